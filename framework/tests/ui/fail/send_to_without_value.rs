use bindery::{send_to, stream_listener};

#[stream_listener("input")]
#[send_to("output")]
async fn nothing() {}

#[stream_listener("input")]
#[send_to("output")]
async fn nothing_or_an_error() -> Result<(), std::fmt::Error> {
    Ok(())
}

fn main() {}
