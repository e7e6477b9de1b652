use bindery::stream_listener;

struct Number;

#[stream_listener("input")]
async fn unreadable(#[header("no")] no: Number) {
    let _ = no;
}

#[stream_listener("input")]
async fn unnamed(#[header] no: u64) {
    let _ = no;
}

fn main() {}
