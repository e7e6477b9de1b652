//! `bindery.*`: what Spring has no word for. A file with these keys stays loadable by Java.

use super::{
    Section,
    row::{BOOL, DAY, Kind, NAMES, Row, TEXT, Unit, int, later, live},
};

pub(super) static SECTIONS: &[Section] = &[Section {
    bases: &["bindery"],
    rows: BINDERY,
}];

static BINDERY: &[Row] = &[
    Row::new(
        "config.allow-unused",
        BOOL,
        "false",
        "A binding that nothing uses is no error.",
    ),
    Row::new(
        "config.destination-from-name",
        BOOL,
        "false",
        "A binding without destination takes its own name as topic.",
    ),
    Row::new(
        "config.compat",
        Kind::Choice(&[live("strict"), live("lenient")]),
        "strict",
        "lenient: unknown keys are warnings, for files shared with Java.",
    ),
    Row::new(
        "dynamic-destinations",
        NAMES,
        "deny",
        "deny, allow, or the names that may be bound at run time.",
    )
    .later(),
    Row::new(
        "topics.auto-create",
        Kind::Choice(&[live("declared"), live("never")]),
        "declared",
        "Whether topics of bindings are created when absent.",
    ),
    Row::new(
        "topics.*.queues",
        int(1, 1024),
        "8",
        "Queues of a topic when it is created.",
    ),
    Row::new(
        "topics.*.perm",
        int(2, 6),
        "6",
        "2: write, 4: read, 6: both.",
    ),
    Row::new(
        "topics.*.order",
        BOOL,
        "false",
        "Keep the topic's order configuration at the name server.",
    ),
    Row::new(
        "shutdown.grace",
        Kind::Duration {
            unit: Unit::Seconds,
            min: 0,
            max: DAY,
        },
        "30s",
        "How long running handlers may finish when the application stops.",
    ),
    Row::new(
        "startup.await-broker",
        Kind::Duration {
            unit: Unit::Seconds,
            min: 0,
            max: DAY,
        },
        "0s",
        "How long the start waits for a broker.",
    )
    .later(),
    Row::new(
        "consumer.start-like-java",
        BOOL,
        "false",
        "Start points as the Java client has them: topics minutes old are replayed.",
    ),
    Row::new(
        "consumer.allow-anonymous",
        BOOL,
        "false",
        "Inputs without a group.",
    )
    .later(),
    Row::new(
        "consumer.reset-offsets-on-start",
        BOOL,
        "false",
        "Go to the start point although the group has offsets: at the start of a group that has no other member.",
    ),
    Row::new(
        "consumer.static-assignment",
        BOOL,
        "false",
        "Queues by instance index.",
    )
    .later(),
    Row::new(
        "consumer.strict-last",
        BOOL,
        "true",
        "An older name: strict is the rule.",
    )
    .refused("LAST is always strict; consumer.start-like-java brings the old replay back"),
    Row::new(
        "partition.on-missing-queue",
        Kind::Choice(&[live("fail"), later("rehash")]),
        "fail",
        "What an ordered send does whose queue is gone.",
    )
    .later(),
    Row::new(
        "middleware.*",
        NAMES,
        "",
        "Layers around the handlers of a binding.",
    )
    .later(),
    Row::new("tls.**", TEXT, "", "Certificates.").later(),
    Row::new(
        "embedded.enabled",
        BOOL,
        "false",
        "A name server and a broker inside this process.",
    )
    .also(&["embedded"]),
    Row::new(
        "embedded.namesrv-port",
        int(0, 65_535),
        "0",
        "The name server's port; 0: any free one.",
    ),
    Row::new(
        "embedded.broker-port",
        int(0, 65_535),
        "0",
        "The broker's port; 0: any free one.",
    ),
    Row::new(
        "embedded.host",
        TEXT,
        "127.0.0.1",
        "The address both listen on.",
    ),
    Row::new(
        "embedded.store-dir",
        TEXT,
        "./.bindery/store",
        "The store folder.",
    ),
    Row::new(
        "embedded.broker.**",
        TEXT,
        "",
        "The broker's own keys, as in broker.conf.",
    ),
];
