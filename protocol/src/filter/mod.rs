//! Which messages a subscription lets through: everything, a set of tags, or a SQL92 condition on the properties.
//!
//! ```text
//! (expression type, text) ──FilterExpression::parse──▶ All | Tags | Sql ─┐
//!                                                                        ▼
//! consume queue entry ──matches_code──▶ record's properties ──matches_message──▶ delivered or skipped
//!
//! SQL92 text ──lex──▶ tokens ──parse──▶ condition ──evaluate, properties looked up on demand──▶ TRUE | FALSE | unknown
//! ```
//!
//! Mirrors the module `filter` of Apache RocketMQ 5.3.3, with these differences in [`SqlFilter`]:
//! - text behind a complete expression is refused; Java ignores it, so that `a LIKE 'x%'` means just `a` there;
//! - length ([`MAX_LENGTH`]) and nesting ([`MAX_DEPTH`]) are limited where Java's depend on the size of heap and stack;
//! - the text of a property is never read as a hexadecimal floating-point number (`0x1p3`).

mod ast;
mod error;
mod eval;
mod expression;
mod lex;
mod number;
mod parse;
mod part;
mod source;
mod sql;
#[cfg(test)]
mod tests;

pub use error::{EvalError, SqlError, SqlErrorKind, SqlProblem};
pub use expression::{FilterError, FilterExpression};
pub use number::NumberType;
pub use parse::{MAX_DEPTH, MAX_LENGTH};
pub use source::{PropertySource, StoredProperties};
pub use sql::{SqlFilter, Truth};
