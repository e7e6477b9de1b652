//! Partition code without a name, that waits, with a wrong argument, result or signature.

use bindery::{partition_key_extractor, partition_selector};

struct Order;

#[partition_key_extractor]
fn unnamed(_: &Order) -> i64 {
    1
}

#[partition_key_extractor("async")]
async fn asynchronous(_: &Order) -> i64 {
    1
}

#[partition_key_extractor("by-value")]
fn by_value(_: Order) -> i64 {
    1
}

#[partition_key_extractor("result")]
fn result(_: &Order) -> Result<i64, std::fmt::Error> {
    Ok(1)
}

#[partition_key_extractor("nothing")]
fn nothing(_: &Order) {}

#[partition_selector("one")]
fn one(_: u32) -> i32 {
    0
}

#[partition_selector("other")]
fn other(_: &str, _: u32) -> i32 {
    0
}

fn main() {}
