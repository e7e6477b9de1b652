//! What a program answers about its configuration instead of running: it alone knows its handlers.
//!
//! ```text
//! --bindery.check [--json] ─▶ every mistake, exit code 78 when there is one
//! --bindery.explain=KEY ────▶ what the key means, what it is, and where that comes from
//! --bindery.schema ─────────▶ JSON schema of application.yaml, for editors
//! ```

use crate::config::{ConfigErrors, Flags, Loaded, json_schema, report_json, report_text};
use crate::error::{Error, Result};

/// Whether the arguments ask something instead of starting the application.
pub(super) fn asks(flags: &Flags) -> bool {
    flags.check || flags.schema || flags.explain.is_some()
}

/// Answers on standard output.
///
/// # Errors
/// The configuration's mistakes, or a key that does not exist.
pub(super) fn answer(flags: &Flags, loaded: Result<Loaded, ConfigErrors>) -> Result<()> {
    if flags.schema {
        println!("{:#}", json_schema());
        return Ok(());
    }
    match (&loaded, flags.json) {
        (Ok(loaded), true) if flags.check => println!("{:#}", report_json(&loaded.warnings)),
        (Err(errors), true) => println!("{:#}", errors.to_json()),
        (Ok(loaded), false) if flags.check && !loaded.warnings.is_empty() => {
            println!("{}", report_text(&loaded.warnings));
        }
        _ => {}
    }
    let loaded = loaded.map_err(if flags.json {
        Error::ConfigReported
    } else {
        Error::Config
    })?;
    if let Some(key) = &flags.explain {
        println!("{}", loaded.explain(key).map_err(Error::user)?);
    } else if !flags.json {
        println!("the configuration has no mistakes");
    }
    Ok(())
}
