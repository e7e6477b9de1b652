//! Sends numbered messages at a steady pace, consumes them as a member of a group, and says what is missing or came twice: what to
//! watch while brokers and members come and go.
//!
//! ```text
//! cargo run -p bindery-client --example steady -- NAMESRV TOPIC send COUNT PER_SECOND
//! cargo run -p bindery-client --example steady -- NAMESRV TOPIC receive GROUP COUNT [orderly]
//! ```
use std::{
    collections::HashMap,
    error::Error,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use bindery_client::{
    ClientConfig, ConcurrentStatus, ConsumeFrom, FilterExpression, Listener, Message, MessageExt,
    OrderlyStatus, Producer, PushConsumer,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [servers, topic, "send", count, pace] => {
            send(servers, topic, count.parse()?, pace.parse()?).await
        }
        [servers, topic, "receive", group, count] => {
            receive(servers, topic, group, count.parse()?, false).await
        }
        [servers, topic, "receive", group, count, "orderly"] => {
            receive(servers, topic, group, count.parse()?, true).await
        }
        _ => Err(
            "NAMESRV TOPIC send COUNT PER_SECOND | NAMESRV TOPIC receive GROUP COUNT [orderly]"
                .into(),
        ),
    }
}

async fn send(servers: &str, topic: &str, count: u32, pace: u32) -> Result<(), Box<dyn Error>> {
    let producer = Producer::builder("steady-producer")
        .name_servers(servers)
        .start()
        .await?;
    let started = Instant::now();
    let mut failures = 0;
    for number in 0..count {
        tokio::time::sleep_until((started + Duration::from_secs(1) * number / pace).into()).await;
        // A number is sent until a broker has it: what the receiver misses was lost by somebody else.
        while let Err(error) = producer.send(Message::new(topic, number.to_string())).await {
            failures += 1;
            eprintln!("{number}: {error}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    println!(
        "sent {count} in {:?}, {failures} sends failed",
        started.elapsed()
    );
    producer.shutdown().await;
    Ok(())
}

async fn receive(
    servers: &str,
    topic: &str,
    group: &str,
    count: usize,
    orderly: bool,
) -> Result<(), Box<dyn Error>> {
    let seen: Arc<Mutex<HashMap<String, usize>>> = Arc::default();
    let noted = Arc::clone(&seen);
    let note = move |batch: &[MessageExt]| {
        if let Ok(mut seen) = noted.lock() {
            for message in batch {
                *seen
                    .entry(String::from_utf8_lossy(message.body()).into_owned())
                    .or_default() += 1;
            }
        }
    };
    let listener = if orderly {
        Listener::orderly(move |batch: Vec<MessageExt>| {
            note(&batch);
            async { OrderlyStatus::Success }
        })
    } else {
        Listener::concurrent(move |batch: Vec<MessageExt>| {
            note(&batch);
            async { ConcurrentStatus::Success }
        })
    };
    let consumer = PushConsumer::builder(group)
        .config(ClientConfig::new(servers))
        .subscribe(topic, FilterExpression::all())
        .consume_from(ConsumeFrom::First)
        .listener(listener)
        .start()
        .await?;
    let report = || {
        let (different, all) = seen
            .lock()
            .map_or((0, 0), |seen| (seen.len(), seen.values().sum::<usize>()));
        println!(
            "{different} messages, {} of them again, {} queues",
            all - different,
            consumer.assignment().len()
        );
        different
    };
    loop {
        tokio::select! {
            stop = tokio::signal::ctrl_c() => { stop?; break; }
            () = tokio::time::sleep(Duration::from_secs(1)) => {
                if report() >= count {
                    break;
                }
            }
        }
    }
    consumer.shutdown().await;
    report();
    Ok(())
}
