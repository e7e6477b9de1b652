//! Delay levels: custom tables, tables replaced at run time, many messages, and stops of every kind.
use std::{collections::BTreeMap, time::Duration};

use bindery_broker::BrokerError;

use crate::support::{Fixture, Peer, START, until};

async fn send(peer: &Peer, level: i32, body: &str) {
    peer.send("T", 0, body, &format!("DELAY\u{1}{level}\u{2}"))
        .await;
}

/// Everything in queue 0 of `T`: body and store time.
async fn all(peer: &Peer) -> Vec<(String, i64)> {
    let mut all = Vec::new();
    loop {
        let next = i64::try_from(all.len()).unwrap();
        let pulled = peer.pull("T", 0, next).await;
        if pulled.messages.is_empty() {
            return all;
        }
        let messages = pulled.messages.iter();
        all.extend(messages.map(|message| {
            let body = String::from_utf8_lossy(&message.body).into_owned();
            (body, message.store_timestamp)
        }));
    }
}

#[tokio::test]
async fn l14_a_table_with_blanks_is_taken_whole_and_nonsense_leaves_the_old_one() {
    let fixture = Fixture::with(|config| config.message_delay_level = "2s 4s".into()).await;
    let peer = fixture.peer().await;
    for table in ["", " ", "1s 5x", "soon"] {
        let refused = fixture.broker.set_delay_levels(table);
        assert!(
            matches!(refused, Err(BrokerError::DelayLevels(_))),
            "{table}"
        );
    }
    send(&peer, 1, "two").await;
    fixture.clock.advance(Duration::from_secs(2));
    until(|| async { all(&peer).await.len() == 1 }).await;

    fixture.broker.set_delay_levels("1s 5s 10s").unwrap();
    send(&peer, 3, "ten").await;
    fixture.clock.advance(Duration::from_millis(9999));
    // The one of level 1 comes after the wake-up in which the other would have come too early.
    send(&peer, 9, "last").await;
    assert_eq!(all(&peer).await.len(), 1);
    fixture.clock.advance(Duration::from_millis(1));
    until(|| async { all(&peer).await.len() == 2 }).await;
    assert_eq!(all(&peer).await[1], ("ten".to_owned(), START + 12_000));
}

#[tokio::test]
async fn what_waits_is_due_by_the_new_table() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    send(&peer, 5, "a minute").await;
    fixture.clock.advance(Duration::from_secs(3));
    fixture.broker.set_delay_levels("1s 1s 1s 1s 4s").unwrap();
    fixture.clock.advance(Duration::from_secs(1));
    until(|| async { !all(&peer).await.is_empty() }).await;
    assert_eq!(all(&peer).await, [("a minute".to_owned(), START + 4000)]);
}

#[tokio::test]
async fn messages_of_a_level_that_is_gone_are_delivered() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    send(&peer, 18, "two hours").await;
    let fixture = fixture
        .restart_with(|config| config.message_delay_level = "3s".into())
        .await;
    let peer = fixture.peer().await;
    fixture.clock.advance(Duration::from_secs(1));
    until(|| async { all(&peer).await.len() == 1 }).await;
}

#[tokio::test]
async fn thousands_of_mixed_levels_come_in_time_and_none_is_lost_over_stops() {
    const DELAYS: [i64; 5] = [1, 5, 10, 30, 60];
    let mut fixture = Fixture::start().await;
    let mut due = BTreeMap::new();
    let (mut now, mut stops) = (START, Vec::new());
    for round in 0..8_i64 {
        let peer = fixture.peer().await;
        for number in 0..250_usize {
            let body = format!("{round} {number}");
            let level = number % DELAYS.len();
            send(&peer, i32::try_from(level).unwrap() + 1, &body).await;
            due.insert(body, now + DELAYS[level] * 1000);
        }
        for _ in 0..6 {
            fixture.clock.advance(Duration::from_millis(500));
            now += 500;
            // Time stands still until all that is due has come, so the store time is when it came.
            let expected = due.values().filter(|due| **due <= now).count();
            until(|| async { all(&peer).await.len() >= expected }).await;
        }
        stops.push(now);
        fixture = if round % 3 == 2 {
            fixture.drop_and_start().await
        } else {
            fixture.restart().await
        };
    }
    let peer = fixture.peer().await;
    let mut came: BTreeMap<String, i64> = BTreeMap::new();
    for _ in 0..130 {
        fixture.clock.advance(Duration::from_millis(500));
        now += 500;
        let expected = due.values().filter(|due| **due <= now).count();
        until(|| async {
            let mut bodies: Vec<_> = all(&peer).await.into_iter().map(|(body, _)| body).collect();
            bodies.sort_unstable();
            bodies.dedup();
            bodies.len() >= expected
        })
        .await;
        if expected == due.len() {
            break;
        }
    }
    for (body, at) in all(&peer).await {
        // After a kill a message may come again; what counts is the first time.
        came.entry(body).or_insert(at);
    }
    assert_eq!(came.len(), due.len());
    for (body, at) in came {
        let late = at - due[&body];
        assert!((0..=500).contains(&late), "{body} came {late} ms late");
    }
}
