use bindery::{send_to, stream_listener};

#[send_to("output")]
#[stream_listener("input")]
async fn above() {}

#[send_to("output")]
async fn alone() -> String {
    String::new()
}

fn main() {}
