//! Defaults that depend on the machine.
use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket},
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering},
};

/// The host's name, as the kernel has it; `DEFAULT_BROKER` when it can't be read.
pub(super) fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map(|name| name.trim().to_owned())
        .ok()
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "DEFAULT_BROKER".to_owned())
}

/// A folder under the system's temporary folder that no other broker of this process was given.
pub(super) fn scratch_store() -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let nanos = std::time::UNIX_EPOCH
        .elapsed()
        .map_or(0, |elapsed| elapsed.as_nanos());
    std::env::temp_dir().join(format!(
        "bindery-broker-{}-{nanos}-{count}",
        std::process::id()
    ))
}

/// Apache's default: `store` in the user's home.
pub(super) fn home_store() -> PathBuf {
    PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join("store")
}

/// The address clients are given for a broker that listens on `listen`: that one when it names an interface, else the
/// source address of the host's default route, else loopback.
pub(super) fn advertised(listen: SocketAddr) -> IpAddr {
    if !listen.ip().is_unspecified() {
        return listen.ip();
    }
    // Connecting a datagram socket sends nothing: it only asks the routing table which own address would be used.
    let routed = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| {
        socket
            .connect((Ipv4Addr::new(192, 0, 2, 1), 9))
            .and_then(|()| socket.local_addr())
    });
    match routed {
        Ok(address) if !address.ip().is_unspecified() => address.ip(),
        _ => Ipv4Addr::LOCALHOST.into(),
    }
}
