//! Sends that do not fit the kind of the output.

use bindery::prelude::*;

async fn plain_on_trans(output: Output<String, Trans>) {
    let _ = output.send("x".to_owned()).await;
}

async fn transaction_on_orderly(output: Output<String, Orderly>) {
    let _ = output.send_in_transaction("x".to_owned(), TxArgs::none()).await;
}

fn main() {}
