//! What the real Java libraries answered, recorded, against what we answer.
//!
//! ```text
//! BINDERY_ORACLE/NAME.jsonl ─▶ header, cases ─▶ judge of NAME ─▶ passed | refused, and why | failed, and how
//! ```
//! `cargo test -p bindery-tests --test oracle` judges every corpus, `… -- sqlfilter names` some of them. The folder is
//! `tests/golden/oracle` unless `BINDERY_ORACLE` names another. Refused is where Bindery differs on purpose: each judge
//! knows the rules for that, not the cases, so that it can judge cases it has never seen. `docs/expressions.md` lists the
//! rules with their reasons.
//!
//! A program of its own instead of `#[test]` functions, because the counts have to be seen when all is well, too.

mod allocate;
mod corpus;
mod encode;
mod expressions;
mod message;
mod names;
mod partition;
mod recorded;
mod relaxed;
mod sqlfilter;
mod timestamp;
mod typed;

use std::path::PathBuf;
use std::process::ExitCode;

use corpus::Judge;

/// Every corpus with its judge, in the order in which the issue of their making names them.
const CORPORA: [(&str, Judge); 12] = [
    ("expressions", expressions::judge),
    ("partition", partition::judge),
    ("sqlfilter", sqlfilter::judge),
    ("allocate", allocate::judge),
    ("taghash", message::tag_hash),
    ("names", names::names),
    ("namespace", names::namespace),
    ("messageid", message::message_id),
    ("properties", message::properties),
    ("encode", encode::judge),
    ("relaxed", relaxed::judge),
    ("consumeTimestamp", timestamp::judge),
];

fn main() -> ExitCode {
    let folder = std::env::var_os("BINDERY_ORACLE").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/golden/oracle")),
        PathBuf::from,
    );
    // Flags are those of cargo's own harness, which this program does without.
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let mut good = true;
    for (name, judge) in CORPORA {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            good &= corpus::run(&folder, name, judge);
        }
    }
    if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
