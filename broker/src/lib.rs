//! A `RocketMQ` name server and broker, startable in process.
//!
//! ```text
//! producers ─┐                    ┌─ topics, groups, offsets, locks, clients (tables)
//! consumers ─┼─ remoting ─▶ broker ┼─ commit log ─▶ consume queues, index (store)
//! operators ─┘        │           └─ waiting pulls, delay levels
//!                     └─▶ name server: which broker has which topic
//! ```
//! [`Broker::start`] and [`NameServer::start`] return handles; port 0 is allowed, and several of each may live in one
//! process. `shutdown().await` leaves a clean store.

mod cleaning;
mod client;
pub mod config;

mod hold;
mod keep;
mod limits;
mod listing;
mod lock;
pub mod namesrv;
mod offset;
mod open;
mod pop;
mod processor;
pub mod properties;
mod refusal;
mod registration;
mod replace;
mod routes;
mod schedule;
mod server;
mod state;
mod stats;
pub mod store;
mod subscription;
mod table;
mod timer;
mod topic;
mod transaction;

pub use config::{BrokerConfig, FlushDiskType};
pub use listing::{ConfigKey, Standing};
pub use namesrv::{NameServer, NameServerConfig};
pub use server::{Broker, BrokerError};
pub use table::TableError;
