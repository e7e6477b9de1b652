//! What can be said on the command line.
use std::{net::SocketAddr, path::PathBuf};

use clap::{Parser, Subcommand};

/// Starts RocketMQ-compatible servers.
#[derive(Debug, Parser)]
#[command(name = "bindery", version, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// A name server and a broker in one process.
    Up(UpArgs),
    /// A name server.
    Namesrv(NamesrvArgs),
    /// A broker that registers with name servers.
    Broker(BrokerArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct UpArgs {
    /// Where the name server listens; port 0 takes any free one.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9876", value_parser = listen)]
    pub(crate) namesrv_listen: SocketAddr,
    /// Where the broker listens; port 0 takes any free one [default: the file's, else 127.0.0.1:10911].
    #[arg(long, value_name = "HOST:PORT", value_parser = listen)]
    pub(crate) broker_listen: Option<SocketAddr>,
    /// Folder of everything the broker stores [default: the file's, else `bindery-store`].
    #[arg(long, value_name = "DIR")]
    pub(crate) store: Option<PathBuf>,
    /// The broker's configuration, with Apache's keys; what is given on the command line wins.
    #[arg(short = 'c', value_name = "broker.conf")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct NamesrvArgs {
    /// Where to listen [default: the file's, else 127.0.0.1:9876].
    #[arg(long, value_name = "HOST:PORT", value_parser = listen)]
    pub(crate) listen: Option<SocketAddr>,
    /// Configuration with Apache's keys; what is given on the command line wins.
    #[arg(short = 'c', value_name = "namesrv.conf")]
    pub(crate) config: Option<PathBuf>,
    /// Prints every key with its meaning, its default and the value it would have, and ends.
    #[arg(long)]
    pub(crate) print_config: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct BrokerArgs {
    /// Name servers to register with, separated by semicolons [default: the file's].
    #[arg(short = 'n', value_name = "ADDR", env = "NAMESRV_ADDR")]
    pub(crate) name_servers: Option<String>,
    /// Where to listen [default: the file's, else 127.0.0.1:10911].
    #[arg(long, value_name = "HOST:PORT", value_parser = listen)]
    pub(crate) listen: Option<SocketAddr>,
    /// Folder of everything stored [default: the file's, else `bindery-store`].
    #[arg(long, value_name = "DIR")]
    pub(crate) store: Option<PathBuf>,
    /// Configuration with Apache's keys; what is given on the command line wins.
    #[arg(short = 'c', value_name = "broker.conf")]
    pub(crate) config: Option<PathBuf>,
    /// Prints every key with its meaning, its default and the value it would have, and ends.
    #[arg(long)]
    pub(crate) print_config: bool,
}

/// `HOST:PORT`, where the host may be a name.
fn listen(text: &str) -> Result<SocketAddr, String> {
    use std::net::ToSocketAddrs;
    let resolved = text
        .to_socket_addrs()
        .map_err(|error| format!("expected HOST:PORT, {error}"))?;
    let all: Vec<_> = resolved.collect();
    // `localhost` may resolve to ::1 first, which clients that know only IPv4 would not reach.
    all.iter()
        .find(|addr| addr.is_ipv4())
        .or(all.first())
        .copied()
        .ok_or_else(|| "no address for this host".to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    fn parse(words: &[&str]) -> Args {
        Args::try_parse_from(words).unwrap()
    }

    #[test]
    fn up_puts_the_name_server_on_loopback_by_default() {
        let Verb::Up(up) = parse(&["bindery", "up"]).verb else {
            panic!("not `up`")
        };
        assert_eq!(up.namesrv_listen, "127.0.0.1:9876".parse().unwrap());
    }

    #[test]
    fn a_host_name_is_resolved_to_its_ipv4_address() {
        let Verb::Namesrv(namesrv) = parse(&["bindery", "namesrv", "--listen", "localhost:0"]).verb
        else {
            panic!("not `namesrv`")
        };
        assert_eq!(namesrv.listen, Some("127.0.0.1:0".parse().unwrap()));
    }

    #[test]
    fn an_address_without_a_port_is_refused_with_what_was_expected() {
        let error =
            Args::try_parse_from(["bindery", "namesrv", "--listen", "localhost"]).unwrap_err();
        assert!(error.to_string().contains("expected HOST:PORT"), "{error}");
    }
}
