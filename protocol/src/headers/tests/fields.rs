//! Every field of every header: left out, and filled with what it can't be.
use super::*;

type Read = fn(&Frame) -> Result<(), HeaderError>;

macro_rules! headers {
    ($($header:ty,)*) => {
        fn all() -> Vec<(&'static str, &'static [FieldInfo], Read)> {
            vec![$((
                stringify!($header),
                <$header as WireHeader<'_>>::FIELDS,
                |frame| frame.header::<$header>().map(drop),
            ),)*]
        }
    };
}

headers! {
    BrokerConfigReply<'_>,
    BrokerStatsHeader<'_>,
    CommonHeader<'_>,
    ReplicationHeader<'_>,
    MasterFlushOffsetHeader,
    HeartbeatReply,
    UnregisterClientHeader<'_>,
    ConsumerGroupHeader<'_>,
    SendBackHeader<'_>,
    RunningInfoHeader<'_>,
    ConsumeDirectlyHeader<'_>,
    GroupHeader<'_>,
    DeleteGroupHeader<'_>,
    ProducerConnectionHeader<'_>,
    ConsumeStatsHeader<'_>,
    BrokerConsumeStatsHeader,
    SubscriptionHeader<'_>,
    ConsumeTimeSpanHeader<'_>,
    GroupForbiddenHeader<'_>,
    QueryOffsetHeader<'_>,
    OffsetReply,
    UpdateOffsetHeader<'_>,
    SearchOffsetHeader<'_>,
    MaxOffsetHeader<'_>,
    QueueHeader<'_>,
    StoreTimeReply,
    ResetOffsetHeader<'_>,
    ConsumerStatusHeader<'_>,
    CorrectionOffsetHeader<'_>,
    CloneOffsetHeader<'_>,
    PopHeader<'_>,
    PopReply<'_>,
    AckHeader<'_>,
    PeekHeader<'_>,
    ChangeInvisibleTimeHeader<'_>,
    ChangeInvisibleTimeReply,
    NotificationHeader<'_>,
    NotificationReply,
    PollingInfoHeader<'_>,
    PollingInfoReply,
    PullHeader<'_>,
    PullReply,
    QueryMessageHeader<'_>,
    QueryMessageReply,
    ViewMessageHeader<'_>,
    ConsumeQueueHeader<'_>,
    RegisterBrokerHeader<'_>,
    RegisterBrokerReply<'_>,
    UnregisterBrokerHeader<'_>,
    RouteHeader<'_>,
    PutKvHeader<'_>,
    KvHeader<'_>,
    KvReply<'_>,
    KvListHeader<'_>,
    WritePermHeader<'_>,
    WipeWritePermReply,
    AddWritePermReply,
    DeleteRouteHeader<'_>,
    ClusterTopicsHeader<'_>,
    DataVersionHeader<'_>,
    DataVersionReply,
    MemberGroupHeader<'_>,
    BrokerHeartbeatHeader<'_>,
    MinBrokerIdHeader<'_>,
    SendHeader<'_>,
    SendReply<'_>,
    PushReplyHeader<'_>,
    RecallHeader<'_>,
    RecallReply<'_>,
    CreateTopicHeader<'_>,
    TopicHeader<'_>,
    EndTransactionHeader<'_>,
    CheckTransactionHeader<'_>,
    ResumeCheckHeader<'_>,
}

/// A frame with these fields, but for the one called `left_out`.
fn frame(fields: &[FieldInfo], left_out: &str, value: impl Fn(&FieldInfo) -> String) -> Frame {
    let mut request = Request::new(RequestCode::SEND_MESSAGE);
    for field in fields.iter().filter(|field| field.name != left_out) {
        request.ext.put(field.name, &value(field));
    }
    Frame::of_request(&request, 0, false)
}

/// Reads a frame's fields as every header there is.
pub(crate) fn read_all(frame: &Frame) {
    for (_, _, read) in all() {
        if let Err(error) = read(frame) {
            assert!(!error.to_string().is_empty());
        }
    }
}

fn good(field: &FieldInfo) -> String {
    match field.kind {
        FieldKind::Text => "text",
        FieldKind::I32 | FieldKind::I64 => "7",
        FieldKind::Bool => "true",
    }
    .to_owned()
}

#[test]
fn all_headers_are_in_the_list() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/headers");
    let mut defined = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let structs = text
                .lines()
                .filter_map(|line| line.trim().strip_prefix("pub struct "));
            defined += structs
                .map(|name| name.split([' ', '<', '{']).next().unwrap_or_default())
                .filter(|name| name.ends_with("Header") || name.ends_with("Reply"))
                .count();
        }
    }
    assert_eq!(
        all().len(),
        defined,
        "a header is missing in `headers!` above"
    );
}

#[test]
fn l05_a_mandatory_field_that_is_missing_is_named() {
    for (header, fields, read) in all() {
        assert_eq!(read(&frame(fields, "", good)), Ok(()), "{header}");
        for field in fields {
            let outcome = read(&frame(fields, field.name, good));
            let expected = if field.mandatory {
                Err(HeaderError::Missing { field: field.name })
            } else {
                Ok(())
            };
            assert_eq!(outcome, expected, "{header} without {}", field.name);
        }
    }
}

#[test]
fn l05_a_number_that_is_none_or_too_large_is_named() {
    for (header, fields, read) in all() {
        for field in fields {
            let bad: &[&str] = match field.kind {
                FieldKind::I32 => &["seven", "2147483648", "-2147483649", "1.5", "0x10"],
                FieldKind::I64 => &["seven", "9223372036854775808", "1e3"],
                FieldKind::Text | FieldKind::Bool => &[],
            };
            for text in bad {
                let value = |other: &FieldInfo| {
                    if other.name == field.name {
                        (*text).to_owned()
                    } else {
                        good(other)
                    }
                };
                let error = read(&frame(fields, "", value)).unwrap_err();
                let HeaderError::Invalid { field: named, .. } = error else {
                    panic!("{header}.{}: {error}", field.name)
                };
                assert_eq!(named, field.name, "{header}");
            }
        }
    }
}
