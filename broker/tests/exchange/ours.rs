//! Our broker on a store folder, as a process of its own.
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use bindery_broker::{Broker, BrokerConfig};
use bindery_tests::Process;

use crate::SETTINGS;

/// Ample for a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);
const READY: &str = "broker listens on ";

/// The running process.
pub(crate) struct Ours {
    process: Process,
    address: String,
}

/// Starts it: this program again, as a broker.
pub(crate) fn start(store: &Path, switches: &[(&str, &str)]) -> Ours {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg("broker").arg(store);
    let settings = SETTINGS.iter().chain(switches);
    command.args(settings.map(|(key, value)| format!("{key}={value}")));
    let mut process = Process::start(&mut command).unwrap();
    let line = process.wait_for(READY, DEADLINE).unwrap();
    let address = line.split_once(READY).unwrap().1.to_owned();
    Ours { process, address }
}

impl Ours {
    pub(crate) fn address(&self) -> String {
        self.address.clone()
    }

    /// A stop in order.
    pub(crate) fn stop(mut self) {
        let status = self.process.interrupt(DEADLINE).unwrap();
        assert!(status.success(), "{:?}", self.process.output());
    }

    /// SIGKILL.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
    }
}

/// Is the broker, until SIGINT.
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    let (store, settings) = arguments.split_first().unwrap();
    let mut config = BrokerConfig {
        store_path_root_dir: store.into(),
        ..BrokerConfig::default()
    };
    for setting in settings {
        let (key, value) = setting.split_once('=').unwrap();
        config.set(key, value).unwrap();
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let broker = Broker::start(config).await.unwrap();
        println!("{READY}{}", broker.address());
        tokio::signal::ctrl_c().await.unwrap();
        broker.shutdown().await.unwrap();
    });
    ExitCode::SUCCESS
}
