//! From typed values to the structs the run time reads.
//!
//! ```text
//! Values ──Reader (first of: binding's own, default.*, binder's) ──▶ Config
//! ```
//! A field that nothing sets keeps the default of its struct; a test compares those with the table's.

mod around;
mod reader;
mod rocketmq;
mod stream;

use std::collections::BTreeSet;

use super::{report::Diagnostic, span::Span, typed::Config, typing::Values};
use reader::Reader;

/// Names of the user's that stand somewhere, whatever their document's profile.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    /// The section, `spring.cloud.stream.bindings` say.
    pub(crate) section: String,
    pub(crate) name: String,
    pub(crate) span: Span,
    pub(crate) active: bool,
}

/// Builds the configuration from `values`; `names` are the names the sources hold.
pub(crate) fn config(
    values: &Values,
    names: &[Named],
    profiles: Vec<String>,
    report: &mut Vec<Diagnostic>,
) -> Config {
    let mut config = Config {
        profiles,
        ..Config::default()
    };
    around::read(values, names, &mut config);
    stream::read(values, names, &mut config);
    rocketmq::read(values, &mut config, report);
    config
}

/// The active names of a section, each once, with its first place.
fn active_names<'a>(names: &'a [Named], section: &str) -> Vec<(&'a str, &'a Span)> {
    let mut seen = BTreeSet::new();
    names
        .iter()
        .filter(|named| {
            named.active && named.section == section && seen.insert(named.name.as_str())
        })
        .map(|named| (named.name.as_str(), &named.span))
        .collect()
}
