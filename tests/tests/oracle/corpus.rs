//! One corpus: its file, the run of its judge over all cases, and the account of it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use serde_json::Value as Json;

/// What a judge says about a case that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Java's answer.
    Passed,
    /// Another answer on purpose, for this reason.
    Refused(&'static str),
}

/// A judge's answer; the error says in which way the case fails.
pub(crate) type Judged = Result<Verdict, String>;

/// Judges a case; the first argument is the corpus's header.
pub(crate) type Judge = fn(&Json, &Json) -> Judged;

/// Judges all cases of a corpus, prints the account, and says whether it is good.
pub(crate) fn run(folder: &Path, name: &str, judge: Judge) -> bool {
    let path = folder.join(format!("{name}.jsonl"));
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            println!("{name}: cannot read {}: {error}", path.display());
            return false;
        }
    };
    let mut lines = text.lines().map(serde_json::from_str::<Json>);
    let Some(Ok(header)) = lines.next() else {
        println!("{name}: no header in {}", path.display());
        return false;
    };
    let mut account = Account::default();
    for line in lines {
        match line {
            Ok(case) => account.take(&case["id"], guarded(judge, &header, &case)),
            Err(error) => account.take(&Json::Null, Err(format!("no JSON: {error}"))),
        }
    }
    account.print(name);
    account.failed.is_empty()
}

/// A panic is the failure of the case at hand, not of those behind it.
fn guarded(judge: Judge, header: &Json, case: &Json) -> Judged {
    catch_unwind(AssertUnwindSafe(|| judge(header, case)))
        .unwrap_or_else(|_| Err("the judge panicked, see above".to_owned()))
        .map_err(|problem| format!("{problem}; {}", excerpt(case)))
}

/// The case's question and answer, shortened.
fn excerpt(case: &Json) -> String {
    let text = format!("{} -> {}", case["in"], case["out"]);
    match text.char_indices().nth(400) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[derive(Default)]
struct Account {
    passed: usize,
    failed: Vec<String>,
    refused: BTreeMap<&'static str, Vec<String>>,
}

impl Account {
    fn take(&mut self, id: &Json, judged: Judged) {
        match judged {
            Ok(Verdict::Passed) => self.passed += 1,
            Ok(Verdict::Refused(reason)) => {
                self.refused.entry(reason).or_default().push(id.to_string());
            }
            Err(problem) => self.failed.push(format!("{id}: {problem}")),
        }
    }

    fn print(&self, name: &str) {
        let refused: usize = self.refused.values().map(Vec::len).sum();
        println!(
            "{name}: {} passed, {} failed, {refused} refused",
            self.passed,
            self.failed.len()
        );
        for (reason, ids) in &self.refused {
            println!("    refused, {reason}: {} ({})", ids.len(), ids.join(" "));
        }
        for failure in &self.failed {
            println!("    FAILED {name} {failure}");
        }
    }
}

/// Nothing, if both are the same; else a failure that names `what` differs.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the values are made for the call, and often of different types"
)]
pub(crate) fn same<A: PartialEq<B> + Debug, B: Debug>(
    what: &str,
    ours: A,
    expected: B,
) -> Result<(), String> {
    if ours == expected {
        Ok(())
    } else {
        Err(format!("{what} is {ours:?} instead of {expected:?}"))
    }
}

/// A field that a case of this kind has.
pub(crate) fn text<'a>(json: &'a Json, field: &str) -> Result<&'a str, String> {
    json[field]
        .as_str()
        .ok_or_else(|| format!("`{field}` is no text: {}", json[field]))
}

/// A number that a case of this kind has, in the width that it needs.
pub(crate) fn number<T: TryFrom<i64>>(json: &Json) -> Result<T, String> {
    json.as_i64()
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| format!("no fitting integer: {json}"))
}

/// Bytes written as hexadecimal digits.
pub(crate) fn bytes(hex: &str) -> Result<Vec<u8>, String> {
    (0..hex.len())
        .step_by(2)
        .map(|at| {
            let digits = hex.get(at..at + 2).ok_or("an odd number of digits")?;
            u8::from_str_radix(digits, 16).map_err(|error| error.to_string())
        })
        .collect()
}
