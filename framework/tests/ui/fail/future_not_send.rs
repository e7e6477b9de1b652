use std::rc::Rc;

use bindery::stream_listener;

#[stream_listener("input")]
async fn listener() {
    let shared = Rc::new(1);
    std::future::ready(()).await;
    drop(shared);
}

fn main() {}
