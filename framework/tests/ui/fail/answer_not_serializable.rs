use bindery::{send_to, stream_listener};

struct Order;

#[stream_listener("input")]
#[send_to("output")]
async fn listener() -> Result<Order, std::fmt::Error> {
    Ok(Order)
}

fn main() {}
