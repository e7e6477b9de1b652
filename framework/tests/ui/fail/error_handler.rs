//! Error handlers that do not wait, name two bindings, mistype a key, or take or return something else.

use bindery::error_handler;
use bindery::prelude::*;

#[error_handler("input")]
fn not_async(_: Failure) {}

#[error_handler("input", "other")]
async fn two(_: Failure) {}

#[error_handler("input", fro = std::fmt::Error)]
async fn mistyped(_: Failure) {}

#[error_handler("input", name = "quiet")]
async fn both(_: Failure) {}

#[error_handler("in|put")]
async fn misnamed(_: Failure) {}

fn main() {}
