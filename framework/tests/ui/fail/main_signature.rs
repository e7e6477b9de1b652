#[bindery::main]
async fn main() -> bindery::Result<()> {
    Ok(())
}
