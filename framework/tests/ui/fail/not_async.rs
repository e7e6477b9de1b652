use bindery::stream_listener;

#[stream_listener("input")]
fn listener(text: String) {
    drop(text);
}

fn main() {}
