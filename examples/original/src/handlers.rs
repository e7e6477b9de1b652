//! The handlers: each takes the payload as text, the whole message and all headers, and prints them.

use bindery::prelude::*;

#[stream_listener("input")]
async fn input(payload: String, queue: QueueId, message: Message, headers: Headers) {
    let worker = tokio::task::try_id().map_or_else(|| "?".to_owned(), |id| id.to_string());
    println!("worker {worker}, queue {queue}");
    print(&payload, &message, &headers);
}

#[stream_listener("input-transaction")]
async fn input_transaction(payload: String, message: Message, headers: Headers) {
    print(&payload, &message, &headers);
}

#[stream_listener("input-backtracking")]
async fn input_backtracking(payload: String, message: Message, headers: Headers) {
    print(&payload, &message, &headers);
}

fn print(payload: &str, message: &Message, headers: &Headers) {
    println!("received {payload}");
    println!(
        "  {} bytes from {}, id {}",
        message.payload().len(),
        headers.get("ROCKET_MQ_TOPIC").unwrap_or("?"),
        headers.get("ROCKET_MQ_MESSAGE_ID").unwrap_or("?"),
    );
    for (name, value) in headers.iter() {
        println!("  {name}: {value}");
    }
}
