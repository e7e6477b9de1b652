use bindery::{Input, Output, bindings};

#[bindings]
struct Reversed {
    #[input("orders")]
    orders: Output<String>,
    #[output("events")]
    events: Input,
}

#[bindings]
struct Unnamed {
    orders: Output<String>,
}

#[bindings]
struct Foreign {
    #[output("orders")]
    orders: String,
}

fn main() {}
