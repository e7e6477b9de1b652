//! The chapters of the original series as acceptance tests: one body a row, run on every back end.
//!
//! ```text
//! rows (chapterNN.rs) × back ends ─▶ Stage (TestApp, YAML, handlers that note) ─▶ ok and what was run | failed, and why
//! memory    the binder `memory`, in virtual time
//! embedded  our own name server and broker, in this process, over sockets
//! apache    the cluster whose name server BINDERY_NAMESRV names
//! ```
//! `cargo test -p bindery-tests --test acceptance` runs all; words after `--` choose rows by a part of their name, and back
//! ends by theirs. A back end that is not asked for is said to be missing, never left out in silence.
//!
//! A program of its own instead of `#[test]` functions, because its table has to be seen when all is well, too.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed row")]

mod chapter01;
mod chapter02;
mod chapter04;
mod chapter06;
mod chapter07;
mod chapter09;
mod chapter10;
mod phantom;
mod seen;
mod stage;
mod table;

use std::process::ExitCode;

use stage::{BackEnd, Stage};
use table::{Table, run_all};

/// What a row did, in words; it panics when it does not see what it must.
type Body = fn(Stage) -> std::pin::Pin<Box<dyn Future<Output = String>>>;

/// One row of the table: what a chapter promises.
#[derive(Clone, Copy)]
struct Row {
    chapter: u8,
    name: &'static str,
    company: Company,
    body: Body,
}

/// Whether others may run beside a row on the same servers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Company {
    Any,
    /// It lists brokers that are down, which everybody sees.
    None,
}

/// Names a body as a row.
macro_rules! rows {
    ($($chapter:literal $name:literal $company:ident => $body:path;)*) => {
        [$(Row {
            chapter: $chapter,
            name: $name,
            company: Company::$company,
            body: |stage| Box::pin($body(stage)),
        }),*]
    };
}

/// Every row, in the order of the chapters.
fn rows() -> Vec<Row> {
    rows! {
        1 "quickstart" Any => chapter01::quickstart;
        2 "text-and-tag" Any => chapter02::text_and_tag;
        3 "key-and-id" Any => chapter02::key_and_id;
        4 "one-key-one-queue" Any => chapter04::one_key_one_queue;
        4 "key-from-header" Any => chapter04::key_from_header;
        5 "one-partition" Any => chapter04::one_partition;
        6 "delay-sync" Any => chapter06::delayed_sync;
        6 "delay-async" Any => chapter06::delayed_async;
        7 "transaction" Any => chapter07::outcomes;
        7 "transaction-restart" Any => chapter07::another_instance_answers;
        9 "start-by-time" Any => chapter09::start_by_time;
        10 "broker-down" None => chapter10::broker_down;
        10 "broker-down-async" None => chapter10::broker_down_async;
        10 "redeliveries-default" Any => chapter10::redeliveries_default;
        10 "redeliveries-two" Any => chapter10::redeliveries_two;
        10 "redeliveries-none" Any => chapter10::redeliveries_none;
        10 "redeliveries-minus-one" Any => chapter10::redeliveries_minus_one;
        10 "ladder" Any => chapter10::ladder;
        10 "dead-letter-at-once" Any => chapter10::dead_letter_at_once;
        10 "fixed-delay" Any => chapter10::fixed_delay;
        10 "suspend" Any => chapter10::suspend;
    }
    .into()
}

fn main() -> ExitCode {
    // Flags are those of cargo's own harness, which this program does without.
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let (back_ends, parts): (Vec<&str>, Vec<&str>) = words
        .iter()
        .map(String::as_str)
        .partition(|word| BackEnd::ALL.iter().any(|known| known.name() == *word));
    let chosen = |back_end: &BackEnd| {
        back_ends.is_empty() || back_ends.iter().any(|word| *word == back_end.name())
    };
    let rows: Vec<Row> = rows()
        .into_iter()
        .filter(|row| parts.is_empty() || parts.iter().any(|part| row.name.contains(part)))
        .collect();
    let mut table = Table::new(&rows);
    for back_end in BackEnd::ALL.into_iter().filter(chosen) {
        if back_end.is_asked_for() {
            table.add(back_end, run_all(back_end, &rows));
        } else {
            table.not_asked_for(back_end);
        }
    }
    print!("{table}");
    if table.is_good() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
