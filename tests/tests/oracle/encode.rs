//! The bytes of messages: as stored, as shipped, in a batch, and damaged.

use std::net::{IpAddr, SocketAddr};

use bindery_protocol::message::batch::{self, BatchElement};
use bindery_protocol::message::record::{self, MAX_PROPERTIES};
use bindery_protocol::message::{
    NewMessage, PhysicalOffset, Properties, QueueOffset, RecordView, StoredMessage, SysFlag,
};
use bytes::{Bytes, BytesMut};
use serde_json::Value as Json;

use super::corpus::{Judged, Verdict, bytes, number, same, text};
use super::message::{pairs, sorted};

const TOPIC_LENGTH: &str = "a long topic is written with the second magic instead of overflowing";
const SIZE_LIMIT: &str = "the body's limit is a setting of the broker, not of the codec";

pub(crate) fn judge(_: &Json, case: &Json) -> Judged {
    let (input, out) = (&case["in"], &case["out"]);
    match text(input, "group")? {
        "batch" => batch_body(input, out),
        "limit" => limit(input, out),
        "bodyCrc" => {
            let crc = record::body_crc(text(input, "text")?.as_bytes());
            same("the checksum", i64::from(crc), number::<i64>(&out["crc"])?)?;
            Ok(Verdict::Passed)
        }
        group => one_record(group, input, out),
    }
}

fn one_record(group: &str, input: &Json, out: &Json) -> Judged {
    let sys_flag = SysFlag(
        input["sysFlag"]
            .as_i64()
            .map_or(Ok(0), |_| number(&input["sysFlag"]))?,
    );
    if out.get("error").is_some() {
        if sys_flag.is_compressed() {
            same(
                "a known compression",
                sys_flag.compression().is_some(),
                false,
            )?;
            return Ok(Verdict::Passed);
        }
        encoded(input)?;
        return Ok(Verdict::Refused(TOPIC_LENGTH));
    }
    let recorded = bytes(out["hex"].as_str().map_or_else(|| text(input, "hex"), Ok)?)?;
    // Compressed bytes depend on the zlib build: those cases are compared after decoding only.
    if group == "store" || (group == "wire" && !sys_flag.is_compressed()) {
        same("the record", &encoded(input)?[..], &recorded[..])?;
    }
    let read = record::decode(&Bytes::from(recorded.clone()));
    if out["decoded"].is_null() {
        // Java inflates while it decodes; here a damaged body is found when it is asked for.
        let damaged = read.is_err() || read.is_ok_and(|(m, _)| m.decompressed_body().is_err());
        same("damaged", damaged, true)?;
    } else {
        let (message, _) = read.map_err(|error| error.to_string())?;
        decoded(&message, &out["decoded"])?;
    }
    if let (Some(checked), false) = (out["checked"].as_bool(), out["decoded"].is_null()) {
        let found = RecordView::parse(&recorded).is_ok_and(|view| view.check_crc().is_ok());
        same("the checksum is right", found, checked)?;
    }
    Ok(Verdict::Passed)
}

fn encoded(input: &Json) -> Result<BytesMut, String> {
    let body = bytes(text(input, "body")?)?;
    let properties = property_text(&input["properties"]);
    let message = NewMessage {
        topic: text(input, "topic")?,
        queue_id: number(&input["queueId"])?,
        flag: number(&input["flag"])?,
        sys_flag: SysFlag(number(&input["sysFlag"])?),
        born_timestamp: number(&input["bornTimestamp"])?,
        born_host: host(&input["bornHost"])?,
        store_host: host(&input["storeHost"])?,
        reconsume_times: number(&input["reconsumeTimes"])?,
        prepared_transaction_offset: number(&input["preparedTransactionOffset"])?,
        body: &body,
        properties: properties.as_bytes(),
    };
    let mut bytes = BytesMut::new();
    record::encode(&message, &mut bytes).map_err(|error| error.to_string())?;
    let queue_offset = QueueOffset(number(&input["queueOffset"])?);
    let physical = PhysicalOffset(number(&input["physicalOffset"])?);
    record::patch(
        &mut bytes,
        queue_offset,
        physical,
        number(&input["storeTimestamp"])?,
    );
    Ok(bytes)
}

/// Joins pairs without dropping duplicates or empty names, as the recorded encoder was given them.
fn property_text(list: &Json) -> String {
    let joined = |(name, value): (String, String)| format!("{name}\u{1}{value}\u{2}");
    pairs(list).into_iter().map(joined).collect()
}

fn host(json: &Json) -> Result<SocketAddr, String> {
    let parts = json.as_str().and_then(|text| text.split_once(' '));
    let (ip, port) = parts.ok_or_else(|| format!("no host: {json}"))?;
    let ip: IpAddr = ip.parse().map_err(|_| format!("no address: {ip}"))?;
    Ok(SocketAddr::new(
        ip,
        port.parse().map_err(|_| format!("no port: {port}"))?,
    ))
}

fn decoded(read: &StoredMessage, expected: &Json) -> Result<(), String> {
    same("the topic", Some(&*read.topic), expected["topic"].as_str())?;
    for (what, ours) in [
        ("queueId", i64::from(read.queue_id)),
        ("flag", i64::from(read.flag)),
        ("queueOffset", read.queue_offset.0),
        ("physicalOffset", read.physical_offset.0),
        ("bornTimestamp", read.born_timestamp),
        ("storeTimestamp", read.store_timestamp),
        ("reconsumeTimes", i64::from(read.reconsume_times)),
        (
            "preparedTransactionOffset",
            read.prepared_transaction_offset,
        ),
        ("bodyCRC", i64::from(read.body_crc)),
    ] {
        same(what, Some(ours), expected[what].as_i64())?;
    }
    // Java clears the compressed bit after inflating.
    let sys_flag: i32 = number(&expected["sysFlag"])?;
    same("sysFlag", read.sys_flag.0 | 1, sys_flag | 1)?;
    let body = read
        .decompressed_body()
        .map_err(|error| error.to_string())?;
    same(
        "the body",
        &body[..],
        bytes(expected["body"].as_str().unwrap_or_default())?,
    )?;
    same(
        "the properties",
        sorted(&read.properties),
        pairs(&expected["properties"]),
    )?;
    same(
        "the born host",
        read.born_host,
        host(&expected["bornHost"])?,
    )?;
    same(
        "the store host",
        read.store_host,
        host(&expected["storeHost"])?,
    )?;
    match expected["msgId"].as_str() {
        Some(id) => same("the id", &*read.offset_msg_id(), id),
        None => Ok(()),
    }
}

fn batch_body(input: &Json, out: &Json) -> Judged {
    let mut body = BytesMut::new();
    for message in input["messages"].as_array().into_iter().flatten() {
        let sent = bytes(text(message, "body")?)?;
        let properties = property_text(&message["properties"]);
        let element = BatchElement {
            flag: number(&message["flag"])?,
            body: &sent,
            properties: properties.as_bytes(),
        };
        batch::encode(&element, &mut body).map_err(|error| error.to_string())?;
    }
    same("the body", &body[..], bytes(text(out, "hex")?)?)?;
    let elements = batch::decode(&body).map_err(|error| error.to_string())?;
    let expected = out["decoded"].as_array().map_or(&[][..], Vec::as_slice);
    same("the number of messages", elements.len(), expected.len())?;
    for (element, expected) in elements.iter().zip(expected) {
        same(
            "the flag",
            i64::from(element.flag),
            number::<i64>(&expected["flag"])?,
        )?;
        same("the body", element.body, bytes(text(expected, "body")?)?)?;
        let properties = Properties::parse_bytes(element.properties);
        same(
            "the properties",
            sorted(&properties),
            pairs(&expected["properties"]),
        )?;
    }
    Ok(Verdict::Passed)
}

fn limit(input: &Json, out: &Json) -> Judged {
    let Some(key) = input["key"].as_str() else {
        return Ok(Verdict::Refused(SIZE_LIMIT));
    };
    let value = "v".repeat(number(&input["valueLength"])?);
    let properties: Properties = [(key, &*value)].into_iter().collect();
    let len = properties.encode().len();
    same(
        "the length",
        len,
        number::<usize>(&out["propertiesLength"])?,
    )?;
    same("short enough", len <= MAX_PROPERTIES, out["status"] == "OK")?;
    Ok(Verdict::Passed)
}
