use bindery::{Headers, stream_listener};

struct Order;

#[stream_listener("input")]
async fn listener(headers: Headers, order: Order) {
    let _ = (headers, order);
}

fn main() {}
