use bindery::{send_to, stream_listener};

#[stream_listener("input", condition = "payload.id > 3")]
#[send_to("output")]
async fn listener() -> String {
    String::new()
}

fn main() {}
