use bindery::stream_listener;

#[stream_listener("input")]
async fn listener(#[payload] first: String, #[payload] second: String) {
    drop((first, second));
}

fn main() {}
