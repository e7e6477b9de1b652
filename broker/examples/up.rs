//! A name server and a broker in one process, for trying things out.
//!
//! ```text
//! cargo run -p bindery-broker --example up -- [NAMESRV_PORT [BROKER_PORT [STORE_DIR [KEY=VALUE…]]]]
//! ```
//! Defaults: 9876, 10911, `./bindery-store`. Ends on Ctrl-C with a clean store.
use std::{error::Error, net::SocketAddr};

use bindery_broker::{Broker, BrokerConfig, NameServer, NameServerConfig};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let namesrv_port: u16 = arguments.next().as_deref().unwrap_or("9876").parse()?;
    let broker_port: u16 = arguments.next().as_deref().unwrap_or("10911").parse()?;
    let store = arguments
        .next()
        .unwrap_or_else(|| "./bindery-store".to_owned());

    let listen = SocketAddr::from(([127, 0, 0, 1], namesrv_port));
    let name_server = NameServer::start(NameServerConfig {
        listen,
        ..NameServerConfig::default()
    })
    .await?;
    let mut config = BrokerConfig {
        listen: SocketAddr::from(([127, 0, 0, 1], broker_port)),
        namesrv_addr: name_server.local_addr().to_string(),
        store_path_root_dir: store.into(),
        ..BrokerConfig::default()
    };
    for setting in arguments {
        let (key, value) = setting.split_once('=').ok_or("settings are KEY=VALUE")?;
        config
            .set(key, value)
            .or(Err(format!("`{setting}` is not a setting of the broker")))?;
    }
    let broker = Broker::start(config).await?;
    println!(
        "name server {}, broker {}",
        name_server.local_addr(),
        broker.address()
    );

    tokio::signal::ctrl_c().await?;
    broker.shutdown().await?;
    name_server.shutdown().await;
    Ok(())
}
