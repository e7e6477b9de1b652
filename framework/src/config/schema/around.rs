//! Spring's keys around the streams: application, profiles, web server, actuator, logging.

use super::{
    Section,
    row::{BOOL, DAY, Kind, NAMES, Row, TEXT, TextRule, count, int, live, millis, text},
};

pub(super) static SECTIONS: &[Section] = &[
    Section {
        bases: &["spring"],
        rows: SPRING,
    },
    Section {
        bases: &["server"],
        rows: SERVER,
    },
    Section {
        bases: &["management"],
        rows: MANAGEMENT,
    },
    Section {
        bases: &["logging"],
        rows: LOGGING,
    },
];

const LEVELS: Kind = Kind::Choice(&[
    live("OFF"),
    live("FATAL"),
    live("ERROR"),
    live("WARN"),
    live("INFO"),
    live("DEBUG"),
    live("TRACE"),
]);

static SPRING: &[Row] = &[
    Row::new(
        "application.name",
        TEXT,
        "application",
        "The application's name: client names, metrics label, default groups.",
    ),
    Row::new(
        "config.import",
        NAMES,
        "",
        "Further files, relative to this one; `optional:` before a path that may be absent.",
    ),
    Row::new(
        "config.activate.on-profile",
        NAMES,
        "",
        "The document counts only when this profile expression holds.",
    ),
    Row::new(
        "profiles.active",
        NAMES,
        "",
        "The active profiles; later ones win.",
    ),
    Row::new(
        "profiles.include",
        NAMES,
        "",
        "Profiles that are active beside them, weaker.",
    ),
    Row::new(
        "profiles.default",
        NAMES,
        "default",
        "The profile that is active when none is named.",
    ),
    Row::new(
        "profiles.group.*",
        NAMES,
        "",
        "Profiles that come along with one.",
    ),
    Row::new(
        "profiles",
        NAMES,
        "",
        "The old spelling of config.activate.on-profile.",
    ),
    Row::new(
        "mvc.throw-exception-if-no-handler-found",
        BOOL,
        "",
        "An unknown path is always answered with JSON.",
    )
    .ignored(),
    Row::new(
        "resources.add-mappings",
        BOOL,
        "",
        "No static files are served.",
    )
    .ignored(),
    Row::new(
        "web.resources.add-mappings",
        BOOL,
        "",
        "No static files are served.",
    )
    .ignored(),
    Row::new(
        "integration.poller.fixed-delay",
        millis(0, DAY),
        "1s",
        "How often sources are asked.",
    )
    .later(),
    Row::new(
        "integration.poller.max-messages-per-poll",
        count(1),
        "1",
        "Messages a time.",
    )
    .later(),
    Row::new(
        "integration.poller.cron",
        TEXT,
        "",
        "When sources are asked.",
    )
    .later(),
    Row::new(
        "integration.poller.initial-delay",
        millis(0, DAY),
        "0",
        "Pause before the first time.",
    )
    .later(),
    Row::new(
        "integration.poller.time-unit",
        TEXT,
        "",
        "The unit of the pauses.",
    )
    .later(),
];

static SERVER: &[Row] = &[
    Row::new(
        "port",
        int(0, 65_535),
        "8080",
        "The port of the web server; 0: any free one.",
    ),
    Row::new(
        "address",
        text(TextRule::IpAddress),
        "",
        "The address the web server listens on; every one without it.",
    ),
    Row::new(
        "servlet.context-path",
        text(TextRule::Path),
        "",
        "Prefix of every route.",
    ),
];

static MANAGEMENT: &[Row] = &[
    Row::new(
        "endpoints.web.exposure.include",
        NAMES,
        "health",
        "Which actuator endpoints are served; `*`: all.",
    ),
    Row::new(
        "endpoints.web.exposure.exclude",
        NAMES,
        "",
        "Which are not.",
    ),
    Row::new(
        "endpoints.web.base-path",
        text(TextRule::Path),
        "/actuator",
        "Their path.",
    ),
    Row::new(
        "endpoint.health.show-details",
        Kind::Choice(&[live("never"), live("when-authorized"), live("always")]),
        "never",
        "Who sees the details of the health endpoint.",
    ),
    Row::new(
        "health.binders.enabled",
        BOOL,
        "true",
        "Whether binders count for health.",
    )
    .later(),
    Row::new(
        "server.port",
        int(0, 65_535),
        "",
        "Another port for the actuator.",
    )
    .later(),
];

static LOGGING: &[Row] = &[Row::new(
    "level.**",
    LEVELS,
    "",
    "The level of a log target; `root` is everything.",
)];
