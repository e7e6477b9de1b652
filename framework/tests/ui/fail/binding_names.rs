use bindery::{send_to, stream_listener};

#[stream_listener("in put")]
async fn blank() {}

#[stream_listener]
async fn missing() {}

#[stream_listener("input")]
#[send_to("")]
async fn empty() -> String {
    String::new()
}

fn main() {}
