//! Apache's broker on a store folder, run by `peer.sh`.
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::SETTINGS;

/// A running pair of name server and broker. Stopped when dropped.
pub(crate) struct Apache {
    script: PathBuf,
    variables: Vec<(&'static str, String)>,
    port: u16,
    running: bool,
}

/// Starts it on `store`; everything else it writes goes below `scratch`.
pub(crate) fn start(
    peer: &Path,
    scratch: &Path,
    store: &Path,
    switches: &[(&str, &str)],
) -> Apache {
    let port = free_ports();
    let settings = SETTINGS.iter().chain(switches);
    let mut conf: Vec<String> = settings
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    // A busy machine is no reason to refuse a send.
    conf.push("waitTimeMillsInSendQueue=60000".into());
    conf.push("osPageCacheBusyTimeOutMills=60000".into());
    let variables = vec![
        ("PEER_DIR", scratch.join("apache").display().to_string()),
        ("PEER_STORE", store.display().to_string()),
        ("PEER_BROKER_PORT", port.to_string()),
        ("PEER_NAMESRV_PORT", (port + 2).to_string()),
        ("PEER_BROKER_HEAP", "512m".into()),
        ("PEER_READY_SECS", "240".into()),
        ("PEER_CLUSTER", "GoldenCluster".into()),
        ("PEER_BROKER_NAME", "golden-a".into()),
        ("PEER_CONF", conf.join(";")),
    ];
    let mut apache = Apache {
        script: peer.join("peer.sh"),
        variables,
        port,
        running: true,
    };
    apache.call("start");
    apache.running = true;
    apache
}

/// A port with free ones around it: the broker takes four.
fn free_ports() -> u16 {
    let free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let mut port = 30_000 + u16::try_from(std::process::id() % 20_000).unwrap();
    while !(port - 2..=port + 2).all(free) {
        port += 7;
    }
    port
}

impl Apache {
    fn call(&self, what: &str) {
        let variables = self.variables.iter().map(|(name, value)| (name, value));
        let status = Command::new(&self.script)
            .arg(what)
            .envs(variables)
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success(), "peer.sh {what}");
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Waits until the broker has written a key to its file of offsets.
    pub(crate) async fn offsets_written(&self, store: &Path, key: &str) {
        let files = ["lmqConsumerOffset.json", "consumerOffset.json"];
        let deadline = Instant::now() + Duration::from_secs(60);
        let written = |name: &&str| {
            let text = std::fs::read_to_string(store.join("config").join(name));
            text.is_ok_and(|text| text.contains(key))
        };
        while !files.iter().any(written) {
            assert!(Instant::now() < deadline, "no {key} in {files:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// SIGKILL to the broker.
    pub(crate) fn kill(mut self) {
        self.call("crash");
        self.call("stop");
        self.running = false;
    }

    /// A stop in order.
    pub(crate) fn stop(mut self) {
        self.call("stop");
        self.running = false;
    }
}

impl Drop for Apache {
    fn drop(&mut self) {
        if self.running {
            self.call("stop");
        }
    }
}
