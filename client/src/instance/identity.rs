//! The name brokers know a client by: `ip@instance`, extended by the unit's name.
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use crate::ClientConfig;

/// An address of the documentation range: asked for to learn which address this host would send from.
const SOMEWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 9);

/// The address by which this host reaches the first name server (no packet is sent), else 127.0.0.1.
pub(super) fn local_ip(config: &ClientConfig) -> IpAddr {
    if let Some(ip) = config.client_ip {
        return ip;
    }
    // A host name is not resolved here: that could block for seconds.
    let server = config
        .name_servers
        .iter()
        .find_map(|addr| addr.parse().ok())
        .unwrap_or(SOMEWHERE);
    address_towards(server).unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

fn address_towards(server: SocketAddr) -> Option<IpAddr> {
    let unspecified: IpAddr = if server.is_ipv6() {
        "::".parse().ok()?
    } else {
        Ipv4Addr::UNSPECIFIED.into()
    };
    let socket = UdpSocket::bind((unspecified, 0)).ok()?;
    socket.connect(server).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// Without a configured instance name the id has the process id and 64 random bits: containers often share address and process
/// id, and two members with one id would both believe they own the same queues.
pub(super) fn client_id(config: &ClientConfig, ip: IpAddr) -> String {
    let instance = config
        .instance_name
        .clone()
        .unwrap_or_else(|| format!("{}#{:016x}", std::process::id(), rand::random::<u64>()));
    let mut id = format!("{}@{instance}", host_text(ip));
    if let Some(unit) = config
        .unit_name
        .as_deref()
        .filter(|unit| !unit.trim().is_empty())
    {
        id.push('@');
        id.push_str(unit);
    }
    id
}

/// An IPv6 address stands in brackets.
pub(crate) fn host_text(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_clients_of_one_process_have_different_ids() {
        let config = ClientConfig::new("127.0.0.1:9876");
        let ip = local_ip(&config);
        assert_eq!(
            ip,
            IpAddr::V4(Ipv4Addr::LOCALHOST),
            "the way to a loopback server is the loopback"
        );
        assert_ne!(client_id(&config, ip), client_id(&config, ip));
    }

    #[test]
    fn a_configured_instance_makes_a_stable_id() {
        let mut config = ClientConfig::new("h:1").instance_name("orders");
        config.unit_name = Some("u".to_owned());
        assert_eq!(
            client_id(&config, IpAddr::from([10, 0, 0, 1])),
            "10.0.0.1@orders@u"
        );
        assert_eq!(
            client_id(&config, "::1".parse().expect("an address")),
            "[::1]@orders@u"
        );
    }
}
