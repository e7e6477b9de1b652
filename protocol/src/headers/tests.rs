#![allow(clippy::unwrap_used, reason = "a test may panic")]

pub(crate) mod fields;

use std::{borrow::Cow, collections::BTreeMap};

use super::*;
use crate::{
    codes::RequestCode,
    frame::{Frame, Request, tests::golden},
};

/// Fields that any request may carry and no header lists.
const COMMON: [&str; 9] = [
    "AccessKey",
    "Signature",
    "SecurityToken",
    "ReqT",
    "bname",
    "ns",
    "nsd",
    "oway",
    "lo",
];

fn fields(frame: &Frame) -> BTreeMap<String, String> {
    frame
        .ext_fields()
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect()
}

/// Reads the header, writes it, and returns what was read and what was written.
fn round<'a, H: WireHeader<'a>>(
    frame: &'a Frame,
) -> (BTreeMap<String, String>, BTreeMap<String, String>) {
    let header: H = frame.header().unwrap();
    let written = Frame::of_request(
        &Request::new(RequestCode(frame.head.code)).with(&header),
        0,
        false,
    );
    let mut read = fields(frame);
    read.retain(|name, _| !COMMON.contains(&name.as_str()));
    let mut written = fields(&written);
    written.retain(|name, _| !COMMON.contains(&name.as_str()));
    (read, written)
}

type Round = for<'a> fn(&'a Frame) -> (BTreeMap<String, String>, BTreeMap<String, String>);

/// The header of each request code.
fn request_header(code: i64) -> Option<Round> {
    Some(match code {
        10 | 310 | 320 | 324 | 325 => |frame| round::<SendHeader<'_>>(frame),
        11 | 361 => |frame| round::<PullHeader<'_>>(frame),
        12 => |frame| round::<QueryMessageHeader<'_>>(frame),
        14 => |frame| round::<QueryOffsetHeader<'_>>(frame),
        15 => |frame| round::<UpdateOffsetHeader<'_>>(frame),
        17 => |frame| round::<CreateTopicHeader<'_>>(frame),
        29 => |frame| round::<SearchOffsetHeader<'_>>(frame),
        30 => |frame| round::<MaxOffsetHeader<'_>>(frame),
        31 | 32 => |frame| round::<QueueHeader<'_>>(frame),
        33 => |frame| round::<ViewMessageHeader<'_>>(frame),
        35 => |frame| round::<UnregisterClientHeader<'_>>(frame),
        36 => |frame| round::<SendBackHeader<'_>>(frame),
        37 => |frame| round::<EndTransactionHeader<'_>>(frame),
        38 | 40 | 203 => |frame| round::<ConsumerGroupHeader<'_>>(frame),
        39 => |frame| round::<CheckTransactionHeader<'_>>(frame),
        100 => |frame| round::<PutKvHeader<'_>>(frame),
        101 | 102 => |frame| round::<KvHeader<'_>>(frame),
        103 => |frame| round::<RegisterBrokerHeader<'_>>(frame),
        104 => |frame| round::<UnregisterBrokerHeader<'_>>(frame),
        105 => |frame| round::<RouteHeader<'_>>(frame),
        202 | 215 | 217 | 300 | 351 => |frame| round::<TopicHeader<'_>>(frame),
        204 => |frame| round::<ProducerConnectionHeader<'_>>(frame),
        205 | 327 => |frame| round::<WritePermHeader<'_>>(frame),
        207 => |frame| round::<DeleteGroupHeader<'_>>(frame),
        208 => |frame| round::<ConsumeStatsHeader<'_>>(frame),
        216 => |frame| round::<DeleteRouteHeader<'_>>(frame),
        219 => |frame| round::<KvListHeader<'_>>(frame),
        220 | 222 => |frame| round::<ResetOffsetHeader<'_>>(frame),
        221 | 223 => |frame| round::<ConsumerStatusHeader<'_>>(frame),
        224 => |frame| round::<ClusterTopicsHeader<'_>>(frame),
        303 => |frame| round::<ConsumeTimeSpanHeader<'_>>(frame),
        307 => |frame| round::<RunningInfoHeader<'_>>(frame),
        308 => |frame| round::<CorrectionOffsetHeader<'_>>(frame),
        309 => |frame| round::<ConsumeDirectlyHeader<'_>>(frame),
        314 => |frame| round::<CloneOffsetHeader<'_>>(frame),
        315 => |frame| round::<BrokerStatsHeader<'_>>(frame),
        317 => |frame| round::<BrokerConsumeStatsHeader>(frame),
        321 => |frame| round::<ConsumeQueueHeader<'_>>(frame),
        322 => |frame| round::<DataVersionHeader<'_>>(frame),
        326 => |frame| round::<PushReplyHeader<'_>>(frame),
        343 | 352 => |frame| round::<GroupHeader<'_>>(frame),
        345 => |frame| round::<SubscriptionHeader<'_>>(frame),
        353 => |frame| round::<GroupForbiddenHeader<'_>>(frame),
        370 => |frame| round::<RecallHeader<'_>>(frame),
        901 => |frame| round::<MemberGroupHeader<'_>>(frame),
        904 => |frame| round::<BrokerHeartbeatHeader<'_>>(frame),
        200_050 => |frame| round::<PopHeader<'_>>(frame),
        200_051 => |frame| round::<AckHeader<'_>>(frame),
        200_052 => |frame| round::<PeekHeader<'_>>(frame),
        200_053 => |frame| round::<ChangeInvisibleTimeHeader<'_>>(frame),
        200_054 => |frame| round::<NotificationHeader<'_>>(frame),
        200_055 => |frame| round::<PollingInfoHeader<'_>>(frame),
        _ => return None,
    })
}

/// The header of the answer to each request code.
fn reply_header(code: i64) -> Option<Round> {
    Some(match code {
        10 | 310 | 320 | 325 => |frame| round::<SendReply<'_>>(frame),
        11 | 361 => |frame| round::<PullReply>(frame),
        12 => |frame| round::<QueryMessageReply>(frame),
        14 | 29 | 30 | 31 => |frame| round::<OffsetReply>(frame),
        26 => |frame| round::<BrokerConfigReply<'_>>(frame),
        32 => |frame| round::<StoreTimeReply>(frame),
        34 => |frame| round::<HeartbeatReply>(frame),
        101 => |frame| round::<KvReply<'_>>(frame),
        103 => |frame| round::<RegisterBrokerReply<'_>>(frame),
        205 => |frame| round::<WipeWritePermReply>(frame),
        322 => |frame| round::<DataVersionReply>(frame),
        327 => |frame| round::<AddWritePermReply>(frame),
        370 => |frame| round::<RecallReply<'_>>(frame),
        200_050 | 200_052 => |frame| round::<PopReply<'_>>(frame),
        200_053 => |frame| round::<ChangeInvisibleTimeReply>(frame),
        200_054 => |frame| round::<NotificationReply>(frame),
        200_055 => |frame| round::<PollingInfoReply>(frame),
        _ => return None,
    })
}

#[test]
fn recorded_headers_are_read_and_written_alike() {
    let mut checked = 0;
    for recorded in golden() {
        let frame = recorded.frame();
        let code = recorded.request_code();
        let round = match (recorded.is_request(), frame.head.code) {
            (true, _) => request_header(code),
            (false, 0) => reply_header(code),
            (false, _) => None,
        };
        // Request 127 lacks mandatory fields on purpose.
        let Some(round) = round.filter(|_| !recorded.name.starts_with("127-")) else {
            continue;
        };
        let (read, mut written) = round(&frame);
        if recorded.is_request() && matches!(code, 10 | 324) {
            // A send header is written as letters.
            let v2: SendHeader<'_> = frame.header().unwrap();
            let mut request = Request::new(RequestCode::SEND_MESSAGE);
            v2.write_v1(&mut request.ext);
            written = fields(&Frame::of_request(&request, 0, false));
        }
        for (name, value) in &read {
            let kept = written
                .get(name)
                .unwrap_or_else(|| panic!("{}: {name} got lost", recorded.name));
            assert!(
                kept.eq_ignore_ascii_case(value),
                "{}: {name} was {value}, is {kept}",
                recorded.name
            );
        }
        checked += 1;
    }
    assert!(checked > 200, "only {checked} headers were checked");
}

#[test]
fn both_spellings_of_a_send_header_read_the_same() {
    let recorded = golden();
    let v2 = recorded
        .iter()
        .find(|golden| golden.name.starts_with("041-310") && golden.is_request())
        .unwrap()
        .frame();
    let header: SendHeader<'_> = v2.header().unwrap();
    assert_eq!(
        (header.topic.as_ref(), header.default_topic.as_ref()),
        ("TopicWire", "TBW102")
    );
    assert!(header.properties.as_deref().unwrap().contains('\u{1}'));
    let mut v1 = Request::new(RequestCode::SEND_MESSAGE);
    header.write_v1(&mut v1.ext);
    assert_eq!(
        Frame::of_request(&v1, 0, false)
            .header::<SendHeader<'_>>()
            .unwrap(),
        header
    );
    assert_eq!(header.clone().into_owned(), header);
}

#[test]
fn absent_fields_are_defaults_or_errors() {
    let frame = Frame::of_request(&Request::new(RequestCode::GET_MAX_OFFSET), 0, false);
    let missing = frame.header::<MaxOffsetHeader<'_>>().unwrap_err();
    assert!(matches!(missing, HeaderError::Missing { field: "topic" }));
    let mut request = Request::new(RequestCode::GET_MAX_OFFSET);
    request.ext.put("topic", "T");
    request.ext.put("queueId", "7");
    request.ext.put("committed", "");
    let frame = Frame::of_request(&request, 0, false);
    let header = MaxOffsetHeader {
        topic: Cow::Borrowed("T"),
        queue_id: 7,
        committed: true,
    };
    assert_eq!(frame.header::<MaxOffsetHeader<'_>>().unwrap(), header);
    request.ext.put("queueId", "seven");
    let invalid = Frame::of_request(&request, 0, false)
        .header::<MaxOffsetHeader<'_>>()
        .unwrap_err();
    assert_eq!(
        invalid.to_string(),
        "header field `queueId` has the value `seven`, which is no 32-bit integer"
    );
    assert_eq!(ResetOffsetHeader::default().queue_id, -1);
}

#[test]
fn booleans_are_read_as_java_and_the_cpp_client_write_them() {
    for (text, meaning) in [
        ("true", true),
        ("TRUE", true),
        ("1", true),
        ("0", false),
        ("false", false),
        ("yes", false),
    ] {
        let mut request = Request::new(RequestCode::SEND_MESSAGE_V2);
        request.ext.put("IS_SUB_CHANGE", text);
        let frame = Frame::of_request(&request, 0, false);
        let header: HeartbeatReply = frame.header().unwrap();
        assert_eq!(header.subscriptions_changed, Some(meaning), "{text}");
        assert_eq!(header.supports_v2, None);
    }
}

#[test]
fn oddly_spelled_fields_keep_their_spelling() {
    let mut ext = crate::frame::ExtWriter::default();
    PullHeader {
        proxy_forward_client_id: Some(Cow::Borrowed("c")),
        ..PullHeader::default()
    }
    .write(&mut ext);
    let request = Request {
        ext,
        ..Request::new(RequestCode::PULL_MESSAGE)
    };
    let frame = Frame::of_request(&request, 0, false);
    assert_eq!(frame.ext("proxyFrowardClientId").as_deref(), Some("c"));
}

#[test]
fn l06_the_short_form_may_leave_out_what_java_defaults() {
    let mut request = Request::new(RequestCode::SEND_MESSAGE_V2);
    for (name, value) in ["a", "b", "c", "d", "e", "f", "g", "h"]
        .into_iter()
        .zip(["PG", "T", "TBW102", "4", "0", "0", "7", "0"])
    {
        request.ext.put(name, value);
    }
    let frame = Frame::of_request(&request, 0, false);
    let header: SendHeader<'_> = frame.header().unwrap();
    assert_eq!(header.properties, None);
    assert_eq!(header.reconsume_times, None);
    assert_eq!(
        (header.unit_mode, header.max_reconsume_times, header.batch),
        (None, None, None)
    );
    assert_eq!(header.broker_name, None);
}
