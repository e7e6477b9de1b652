use bindery::stream_listener;

#[stream_listener("input")]
async fn listener() -> String {
    "to nowhere".to_owned()
}

fn main() {}
