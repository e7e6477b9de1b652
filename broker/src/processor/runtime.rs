//! What a broker says about its load and store: 28.
use std::{collections::BTreeMap, fmt::Display};

use bindery_protocol::{
    bodies::{self, KvTable},
    frame::{Frame, Reply, VERSION},
    message::RecordView,
    names,
};
use bindery_remoting::Connection;

use super::Answer;
use crate::state::Core;

/// Name of the release whose protocol we speak.
const VERSION_NAME: &str = "V5_3_3";

/// 28: figures by name, all as text. Queues of thread pools are always empty here: requests are served as they are read.
pub(super) fn info(core: &Core, _: &Connection, _: &Frame) -> Answer {
    let mut table = BTreeMap::new();
    identity(core, &mut table);
    traffic(core, &mut table);
    store(core, &mut table);
    pools(core, &mut table);
    for queue_id in core.store.queue_ids(names::SCHEDULE_TOPIC) {
        let max = core.store.max_offset(names::SCHEDULE_TOPIC, queue_id).0;
        let level = queue_id.saturating_add(1);
        if max > 0 {
            table.insert(
                format!("scheduleMessageOffset_{level}"),
                format!("{},{max}", core.schedule.next(level)),
            );
        }
    }
    Ok(Reply::ok().body(bodies::to_vec(&KvTable { table })?))
}

type Table = BTreeMap<String, String>;

fn put(table: &mut Table, key: &str, value: impl Display) {
    table.insert(key.to_owned(), value.to_string());
}

fn identity(core: &Core, table: &mut Table) {
    put(table, "brokerVersionDesc", VERSION_NAME);
    put(table, "brokerVersion", VERSION);
    put(table, "brokerActive", true);
    put(table, "bootTimestamp", core.stats.started);
    let seconds = (core.now() - core.stats.started).max(0) / 1000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    put(
        table,
        "runtime",
        format!(
            "[ {days} days, {hours} hours, {minutes} minutes, {} seconds ]",
            seconds % 60
        ),
    );
    put(
        table,
        "startAcceptSendRequestTimeStamp",
        core.live().start_accept_send_request_time_stamp,
    );
}

fn traffic(core: &Core, table: &mut Table) {
    let (stats, now) = (&core.stats, core.now());
    put(table, "putTps", stats.put.three_rates(now));
    put(
        table,
        "getTransferredTps",
        stats.transferred.three_rates(now),
    );
    put(table, "getFoundTps", stats.found.three_rates(now));
    put(table, "getMissTps", stats.missed.three_rates(now));
    let total = |seconds| stats.found.rate(seconds, now) + stats.missed.rate(seconds, now);
    put(
        table,
        "getTotalTps",
        format!("{} {} {}", total(10), total(60), total(600)),
    );
    let (put_mornings, get_mornings) = stats.mornings(now);
    put(table, "msgPutTotalYesterdayMorning", put_mornings.yesterday);
    put(table, "msgPutTotalTodayMorning", put_mornings.today);
    put(table, "msgPutTotalTodayNow", stats.put.total());
    put(table, "msgGetTotalYesterdayMorning", get_mornings.yesterday);
    put(table, "msgGetTotalTodayMorning", get_mornings.today);
    put(table, "msgGetTotalTodayNow", stats.transferred.total());
    put(table, "putMessageTimesTotal", stats.put.total());
    put(table, "putMessageFailedTimes", stats.put_failed());
    put(table, "putMessageSizeTotal", stats.put_bytes());
    #[expect(clippy::cast_precision_loss, reason = "an average that is shown")]
    let average = stats.put_bytes() as f64 / stats.put.total().max(1) as f64;
    put(table, "putMessageAverageSize", average);
    put(table, "putMessageDistributeTime", stats.put_distribution());
    put(table, "putLatency99", stats.put_latency(0.99));
    put(table, "putLatency999", stats.put_latency(0.999));
    put(table, "putMessageEntireTimeMax", stats.put_longest());
    put(table, "getMessageEntireTimeMax", stats.get_longest());
}

fn store(core: &Core, table: &mut Table) {
    let stats = core.store.stats();
    put(table, "commitLogMinOffset", stats.min_physical_offset);
    put(table, "commitLogMaxOffset", stats.max_physical_offset);
    put(table, "dispatchBehindBytes", stats.dispatch_behind_bytes);
    let unflushed = (stats.max_physical_offset.0 - stats.flushed.0).max(0);
    put(table, "remainHowManyDataToFlush", format!("{unflushed} B"));
    let first = core.store.message_at(stats.min_physical_offset);
    let earliest = first.and_then(|bytes| {
        RecordView::parse(&bytes)
            .ok()
            .map(|record| record.store_timestamp())
    });
    put(table, "earliestMessageTimeStamp", earliest.unwrap_or(-1));
    let ratio = stats.disk_ratio;
    put(table, "commitLogDiskRatio", format!("{ratio:.2}"));
    put(
        table,
        &format!(
            "commitLogDiskRatio_{}",
            core.config.commit_log_dir().display()
        ),
        format!("{ratio:.2}"),
    );
    put(
        table,
        "consumeQueueDiskRatio",
        format!("{:.2}", stats.queue_disk_ratio),
    );
    if let Ok(volume) = rustix::fs::statvfs(core.config.commit_log_dir()) {
        let total = human(volume.f_blocks.saturating_mul(volume.f_frsize));
        let free = human(volume.f_bavail.saturating_mul(volume.f_frsize));
        put(
            table,
            "commitLogDirCapacity",
            format!("Total : {total}, Free : {free}."),
        );
    }
}

/// `252.0 GiB`.
#[expect(clippy::cast_precision_loss, reason = "a size that is shown")]
fn human(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}

/// Names that mqadmin and the dashboard need; there are no pools behind them in this broker.
fn pools(core: &Core, table: &mut Table) {
    for pool in ["send", "pull", "litePull", "query", "ack"] {
        put(table, &format!("{pool}ThreadPoolQueueSize"), 0);
        put(table, &format!("{pool}ThreadPoolQueueHeadWaitTimeMills"), 0);
    }
    for (pool, capacity) in [("litePull", 100_000), ("query", 20_000), ("ack", 100_000)] {
        put(table, &format!("{pool}ThreadPoolQueueCapacity"), capacity);
    }
    put(
        table,
        "sendThreadPoolQueueCapacity",
        core.live().send_thread_pool_queue_capacity,
    );
    put(
        table,
        "pullThreadPoolQueueCapacity",
        core.config.pull_thread_pool_queue_capacity,
    );
    put(table, "pullHeld", core.holds.len());
    put(table, "EndTransactionQueueSize", 0);
    put(table, "EndTransactionThreadPoolQueueCapacity", 100_000);
    put(table, "pageCacheLockTimeMills", 0);
    put(table, "dispatchMaxBuffer", 0);
    put(table, "remainTransientStoreBufferNumbs", i32::MAX);
    let timer = super::timer::progress(core).unwrap_or_default();
    put(table, "timerReadBehind", timer.read_behind);
    put(table, "timerOffsetBehind", timer.offset_behind);
    put(table, "timerCongestNum", timer.waiting);
    put(table, "timerEnqueueTps", "0.0");
    put(table, "timerDequeueTps", "0.0");
}
