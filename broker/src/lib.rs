//! A RocketMQ name server and broker, startable in process.

pub mod namesrv;
pub mod properties;
pub mod store;
