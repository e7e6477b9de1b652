//! The generated parts of `docs/compatibility.md`: what happens to every request code and every configuration key of
//! Apache `RocketMQ` 5.3.3.
//!
//! ```text
//! tests/golden/request-codes.txt ─▶ each asked of a started broker and name server ─▶ served, or why not ─┐
//! tests/golden/frames/175, 036 (their keys) ─▶ BrokerConfig::keys, NameServerConfig::keys ────────────────┴▶ tables
//! ```
//! `BINDERY_WRITE_DOCS=1 cargo test -p bindery-broker --test wire generated_docs` writes them anew.
use std::{collections::BTreeMap, fmt::Write as _, path::PathBuf};

use bindery_broker::{
    BrokerConfig, ConfigKey, NameServer, NameServerConfig, Standing, properties::Properties,
};
use bindery_protocol::{
    codes::{RequestCode, ResponseCode, Side},
    frame::{Frame, Request},
};
use bytes::BytesMut;

use crate::support::{Fixture, Peer};

fn repository() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The recorded list of codes.
fn codes() -> Vec<(RequestCode, String)> {
    let text =
        std::fs::read_to_string(repository().join("tests/golden/request-codes.txt")).unwrap();
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (number, name) = line.split_once(' ').unwrap();
            (RequestCode(number.parse().unwrap()), name.to_owned())
        })
        .collect()
}

/// The keys in a recorded answer to 26 or 319.
fn recorded_keys(file: &str) -> Vec<String> {
    let bytes = std::fs::read(repository().join("tests/golden/frames").join(file)).unwrap();
    let frame = Frame::decode(&mut BytesMut::from(&bytes[..]), 1 << 24)
        .unwrap()
        .unwrap();
    let text = String::from_utf8(frame.body.to_vec()).unwrap();
    let properties = Properties::parse(&text).unwrap();
    let keys = properties.entries().iter();
    keys.map(|entry| entry.key.clone()).collect()
}

/// Why a server does not serve a code; nothing when it does.
async fn refusal(peer: &Peer, code: RequestCode) -> Option<String> {
    let answer = peer.call(Request::new(code)).await;
    (answer.response_code() == ResponseCode::REQUEST_CODE_NOT_SUPPORTED).then(|| {
        let remark = answer.head.remark.unwrap_or_default();
        match remark.split_once(" not supported") {
            Some((_, "")) => "not served".to_owned(),
            Some((_, reason)) => reason.trim_start_matches([':', ',', ' ']).to_owned(),
            None => remark,
        }
    })
}

async fn code_table() -> String {
    let fixture = Fixture::start().await;
    let broker = fixture.peer().await;
    let named = NameServer::start(NameServerConfig::default())
        .await
        .unwrap();
    let name_server = Peer::connect(named.local_addr()).await;
    let mut served: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut refused = String::new();
    for (code, name) in codes() {
        let sides = code.sides();
        let text = format!("{} {name}", code.0);
        if sides == [Side::Client] {
            served.entry("Sent to clients").or_default().push(text);
            continue;
        }
        let of_name_server = sides.contains(&Side::NameServer);
        let (who, peer) = if of_name_server {
            ("Name server", &name_server)
        } else {
            ("Broker", &broker)
        };
        match refusal(peer, code).await {
            None => served.entry(who).or_default().push(text),
            Some(reason) => {
                let reason = match sides {
                    [Side::Controller] => "there is no controller",
                    [] => "a reserved number: Apache's servers don't serve it either",
                    _ => &reason,
                };
                writeln!(
                    refused,
                    "| {} | {name} | {} |",
                    code.0,
                    reason.replace('|', "/")
                )
                .unwrap();
            }
        }
    }
    let mut text = String::new();
    for (who, codes) in served {
        writeln!(text, "{who}: {}.\n", codes.join(", ")).unwrap();
    }
    write!(
        text,
        "Answered with code 3:\n\n| code | name | why |\n|---|---|---|\n{refused}"
    )
    .unwrap();
    named.shutdown().await;
    text
}

fn key_table(keys: &[ConfigKey]) -> String {
    let mut text = "| key | meaning |\n|---|---|\n".to_owned();
    let mut kept: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for key in keys {
        match key.standing {
            Standing::Obeyed => {
                let meaning = key.meaning.replace('|', "\\|");
                writeln!(text, "| {} | {meaning} |", key.name).unwrap();
            }
            Standing::Kept => {
                let why = key.meaning.trim_start_matches("Kept, not acted on: ");
                let why = why.split_once("; default").map_or(why, |(why, _)| why);
                kept.entry(why).or_default().push(key.name);
            }
        }
    }
    text.push_str(
        "\nAccepted, kept and returned, but not acted on:\n\n| why | keys |\n|---|---|\n",
    );
    for (why, names) in kept {
        writeln!(text, "| {why} | {} |", names.join(", ")).unwrap();
    }
    for key in keys {
        if let Some((_, refused)) = key.meaning.split_once(" The value ") {
            writeln!(text, "\n`{}`: the value {refused}", key.name).unwrap();
        }
    }
    text
}

/// The document with the part between the markers of `name` replaced; put at the end if there are none.
fn replaced(document: &str, name: &str, part: &str) -> String {
    let (begin, end) = (
        format!("<!-- generated: {name} -->\n"),
        "<!-- end -->\n".to_owned(),
    );
    let part = format!("{begin}\n{}\n{end}", part.trim_end());
    let Some(from) = document.find(&begin) else {
        return format!("{}\n\n{part}", document.trim_end());
    };
    let to = document[from..].find(&end).unwrap() + from + end.len();
    format!("{}{part}{}", &document[..from], &document[to..])
}

#[tokio::test]
async fn generated_docs_are_up_to_date() {
    let path = repository().join("docs/compatibility.md");
    let document = std::fs::read_to_string(&path).unwrap();
    let codes = format!("## Request codes\n\n{}", code_table().await);
    let broker = format!(
        "## Keys of `broker.conf`\n\n{}",
        key_table(&BrokerConfig::keys())
    );
    let name_server = format!(
        "## Keys of `namesrv.conf`\n\n{}",
        key_table(&NameServerConfig::keys())
    );
    let mut fresh = document.clone();
    for (name, part) in [
        ("request codes", codes),
        ("broker keys", broker),
        ("name-server keys", name_server),
    ] {
        fresh = replaced(&fresh, name, &part);
    }
    if std::env::var_os("BINDERY_WRITE_DOCS").is_some() {
        std::fs::write(&path, fresh).unwrap();
        return;
    }
    assert!(
        fresh == document,
        "docs/compatibility.md is stale; BINDERY_WRITE_DOCS=1 cargo test -p bindery-broker --test wire generated_docs"
    );
}

#[test]
fn every_recorded_key_and_code_is_known() {
    for key in recorded_keys("175-26-get-broker-config.resp.bin") {
        assert!(BrokerConfig::key_names().contains(&&*key), "broker: {key}");
    }
    let name_server: Vec<_> = NameServerConfig::keys()
        .iter()
        .map(|key| key.name)
        .collect();
    for key in recorded_keys("036-319-get-namesrv-config.resp.bin") {
        assert!(name_server.contains(&&*key), "name server: {key}");
    }
    for (code, name) in codes() {
        if let Some(known) = code.name() {
            assert_eq!(known, name);
        } else {
            // Between the parts of a controller, never on a client's connection.
            assert!((1014..=1018).contains(&code.0), "{} {name}", code.0);
        }
    }
}
