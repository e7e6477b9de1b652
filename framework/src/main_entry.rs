//! What `#[bindery::main]` expands to: runtime, log, flags, and an exit code that says what went wrong.
//!
//! ```text
//! run_main(main) ─▶ --bindery.check · .explain · .schema ─▶ answer and end
//!                └▶ tokio runtime ─▶ main(AppBuilder) ─▶ Ok: 0 · configuration: 78 · else: 1
//! ```

use std::future::Future;
use std::process::ExitCode;

use crate::app::{App, AppBuilder};
use crate::error::{Error, Result};
use crate::pipeline::Chain;

/// Runs the program's main function and turns its result into an exit code; errors are printed on standard error.
pub fn run_main<F, Fut>(main: F) -> ExitCode
where
    F: FnOnce(AppBuilder) -> Fut,
    Fut: Future<Output = Result<()>>,
{
    let log = crate::log::init();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(main(App::builder().log(log))),
        Err(source) => Err(Error::System {
            what: "a runtime",
            source,
        }),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            match &error {
                Error::Config(errors) => eprintln!("{errors}"),
                Error::ConfigReported(_) => {}
                other => eprintln!("error: {}", Chain(other)),
            }
            error.exit_code()
        }
    }
}
