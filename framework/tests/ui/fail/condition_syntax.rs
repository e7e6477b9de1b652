use bindery::stream_listener;

#[stream_listener("input", condition = "headers['type'] == and payload.age > 3")]
async fn incomplete() {}

#[stream_listener("input", condition = "T(java.lang.Runtime).exec('x')")]
async fn unsupported() {}

fn main() {}
