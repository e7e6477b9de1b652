//! What `#[bindery::test]` expands to.

use std::future::Future;

use super::{TestApp, TestAppBuilder};
use crate::error::Error;

/// What the attribute says.
#[derive(Debug, Clone, Copy)]
pub struct TestSource {
    /// The folder of the crate under test.
    pub crate_dir: &'static str,
    /// `yaml`, relative to that folder.
    pub yaml: Option<&'static str>,
    /// `config`, the text itself.
    pub config: Option<&'static str>,
    /// `set`: `key=value`.
    pub set: &'static [&'static str],
    /// `only`.
    pub only: &'static [&'static str],
}

/// Runs an example of the documentation on a broker in memory.
///
/// # Panics
/// When the application does not start.
pub fn example<Fut: Future>(
    config: &'static str,
    body: impl FnOnce(TestApp) -> Fut,
) -> Fut::Output {
    let source = TestSource {
        crate_dir: "",
        yaml: None,
        config: Some(config),
        set: &["spring.cloud.stream.default.consumer.max-attempts=1"],
        only: &[],
    };
    run_test(source, std::convert::identity, body)
}

/// Starts the application and runs the test in a runtime of its own.
///
/// # Panics
/// When the application does not start, with every mistake of its configuration.
pub fn run_test<F, Fut>(
    source: TestSource,
    setup: fn(TestAppBuilder) -> TestAppBuilder,
    body: F,
) -> Fut::Output
where
    F: FnOnce(TestApp) -> Fut,
    Fut: Future,
{
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.unwrap_or_else(|error| panic!("no runtime for the test: {error}"));
    runtime.block_on(async {
        let mut builder = TestApp::builder()
            .crate_dir(source.crate_dir)
            .only(source.only.iter().copied());
        if let Some(yaml) = source.yaml {
            builder = builder.yaml(yaml);
        }
        if let Some(config) = source.config {
            builder = builder.config(config);
        }
        for pair in source.set {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            builder = builder.set(key.trim(), value.trim());
        }
        match setup(builder).start().await {
            Ok(app) => body(app).await,
            Err(Error::Config(errors)) => panic!("the application does not start:\n{errors}"),
            Err(error) => panic!(
                "the application does not start: {}",
                crate::pipeline::Chain(&error)
            ),
        }
    })
}
