use bindery::stream_listener;

#[stream_listener("input", conditon = "payload.id > 3")]
async fn mistyped() {}

#[stream_listener("input", retries = "3")]
async fn invented() {}

fn main() {}
