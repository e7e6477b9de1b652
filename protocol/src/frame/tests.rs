#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use bytes::BufMut as _;
use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// A recorded frame and what index.json says of it.
pub(crate) struct Golden {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) index: Value,
}

impl Golden {
    pub(crate) fn frame(&self) -> Frame {
        decode(&self.bytes)
    }

    pub(crate) fn is_request(&self) -> bool {
        self.index["direction"] == "request"
    }

    pub(crate) fn request_code(&self) -> i64 {
        self.index["requestCode"].as_i64().unwrap()
    }
}

pub(crate) fn golden() -> Vec<Golden> {
    let folder = std::path::Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tests/golden/frames"
    ));
    let index = std::fs::read(folder.join("index.json")).unwrap();
    let index: Vec<Value> = serde_json::from_slice(&index).unwrap();
    let read = |entry: Value| {
        let name = entry["file"].as_str().unwrap().to_owned();
        Golden {
            bytes: std::fs::read(folder.join(&name)).unwrap(),
            name,
            index: entry,
        }
    };
    index.into_iter().map(read).collect()
}

pub(crate) fn decode(bytes: &[u8]) -> Frame {
    Frame::decode(&mut BytesMut::from(bytes), MAX_FRAME)
        .unwrap()
        .unwrap()
}

fn ext_map(frame: &Frame) -> BTreeMap<String, String> {
    frame
        .ext_fields()
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect()
}

fn json_frame(header: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.put_u32(u32::try_from(4 + header.len() + body.len()).unwrap());
    bytes.put_u32(u32::try_from(header.len()).unwrap());
    bytes.put_slice(header.as_bytes());
    bytes.put_slice(body);
    bytes
}

fn encode_request(request: &Request, opaque: i32, oneway: bool) -> Vec<u8> {
    let mut buf = BytesMut::new();
    encode_request_head(&mut buf, request, opaque, oneway);
    buf.put_slice(&request.body);
    buf.to_vec()
}

fn encode_reply(reply: &Reply, opaque: i32) -> Vec<u8> {
    let mut buf = BytesMut::new();
    encode_reply_head(&mut buf, reply, opaque);
    reply.body.iter().for_each(|part| buf.put_slice(part));
    buf.to_vec()
}

#[test]
fn every_recorded_frame_decodes_to_what_the_index_says() {
    let golden = golden();
    assert_eq!(golden.len(), 428);
    for recorded in golden {
        let (frame, name, index) = (recorded.frame(), &recorded.name, &recorded.index);
        let header = &index["header"];
        assert_eq!(i64::from(frame.head.code), index["code"], "{name}");
        assert_eq!(frame.head.language.name(), header["language"], "{name}");
        assert_eq!(
            i64::from(frame.head.version),
            header["version"].as_i64().unwrap_or(0),
            "{name}"
        );
        assert_eq!(i64::from(frame.head.opaque), header["opaque"], "{name}");
        assert_eq!(i64::from(frame.head.flag.0), header["flag"], "{name}");
        assert_eq!(frame.is_oneway(), index["oneway"], "{name}");
        assert_eq!(frame.is_response(), !recorded.is_request(), "{name}");
        let remark = header["remark"].as_str().filter(|text| !text.is_empty());
        assert_eq!(frame.head.remark.as_deref(), remark, "{name}");
        assert_eq!(frame.body.len() as u64, index["bodyBytes"], "{name}");
        let fields = header["extFields"].as_object().cloned().unwrap_or_default();
        let fields = fields
            .into_iter()
            .map(|(name, value)| (name, value.as_str().unwrap_or_default().to_owned()));
        // A binary header can't tell an empty value from an absent one.
        let keep_empty = index["serializeType"] == "JSON";
        let fields: BTreeMap<_, _> = fields
            .filter(|(_, value)| keep_empty || !value.is_empty())
            .collect();
        assert_eq!(ext_map(&frame), fields, "{name}");
    }
}

#[test]
fn every_recorded_frame_is_written_with_the_same_meaning() {
    for recorded in golden() {
        let frame = recorded.frame();
        let mut ext = ExtWriter::default();
        frame
            .ext_fields()
            .for_each(|(name, value)| ext.put(&name, &value));
        let (opaque, oneway) = (frame.head.opaque, frame.is_oneway());
        let (bytes, short_cut) = if frame.is_response() {
            let remark = frame.head.remark.clone().map(Cow::Owned);
            let reply = Reply {
                code: frame.response_code(),
                remark,
                ext,
                body: vec![frame.body.clone()],
            };
            (
                encode_reply(&reply, opaque),
                Frame::of_reply(&reply, opaque),
            )
        } else {
            let request = Request {
                code: frame.request_code(),
                ext,
                body: frame.body.clone(),
            };
            (
                encode_request(&request, opaque, oneway),
                Frame::of_request(&request, opaque, oneway),
            )
        };
        for written in [decode(&bytes), short_cut] {
            let mut head = frame.head.clone();
            (head.language, head.version) = (Language::RUST, VERSION);
            if !frame.is_response() {
                head.remark = None;
            }
            assert_eq!(written.head, head, "{}", recorded.name);
            assert_eq!(ext_map(&written), ext_map(&frame), "{}", recorded.name);
            assert_eq!(written.body, frame.body, "{}", recorded.name);
        }
    }
}

#[test]
fn headers_are_written_compact_with_sorted_keys_and_text_values() {
    let mut request = Request::new(RequestCode::SEND_MESSAGE_V2).body("hello");
    request.ext.put("a", "p\"g\u{1}");
    request.ext.put_integer("e", -1);
    request.ext.put_display("k", false);
    let bytes = encode_request(&request, 7, false);
    let header = br#"{"code":310,"extFields":{"a":"p\"g\u0001","e":"-1","k":"false"},"flag":0,"language":"RUST","opaque":7,"serializeTypeCurrentRPC":"JSON","version":479}"#;
    assert_eq!(&bytes[8..8 + header.len()], header);
    assert_eq!(&bytes[8 + header.len()..], b"hello");
    let reply = Reply::error(ResponseCode::SYSTEM_ERROR, "no\nway")
        .body("a")
        .body("b");
    let text = String::from_utf8(encode_reply(&reply, -3)[8..].to_vec()).unwrap();
    assert_eq!(
        text,
        r#"{"code":1,"flag":1,"language":"RUST","opaque":-3,"remark":"no\nway","serializeTypeCurrentRPC":"JSON","version":479}ab"#
    );
}

#[test]
fn encoding_appends_to_what_is_in_the_buffer() {
    let request = Request::new(RequestCode::HEART_BEAT);
    let mut buf = BytesMut::new();
    encode_request_head(&mut buf, &request, 1, false);
    encode_request_head(&mut buf, &request, 2, true);
    let first = Frame::decode(&mut buf, MAX_FRAME).unwrap().unwrap();
    let second = Frame::decode(&mut buf, MAX_FRAME).unwrap().unwrap();
    assert_eq!((first.head.opaque, second.head.opaque), (1, 2));
    assert!(!first.is_oneway() && second.is_oneway() && buf.is_empty());
}

#[test]
fn json_headers_may_come_in_any_shape_that_java_accepts() {
    let header = " { \"unknown\" : [ {\"a\":\"}\"} , 1 ] ,\"extFields\" : { \"n\" : 42 , \"t\":true,\"x\":null, \"o\":{\"k\":[1]}, \
                  \"s\" : \"\\u0041\\n\\ud83d\\ude00\\ud800\\/é\" } , \"version\":null,\"opaque\":\"-5\", \"remark\":\"\", \
                  \"language\":\"COBOL\",\"flag\":2, \"code\":10 } ";
    let frame = decode(&json_frame(header, b"x"));
    let head = Head {
        code: 10,
        language: Language::OTHER,
        version: 0,
        opaque: -5,
        flag: Flag::ONEWAY,
        remark: None,
    };
    assert_eq!(frame.head, head);
    let fields: Vec<_> = frame
        .ext_fields()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    assert_eq!(
        fields,
        ["n=42", "t=true", "o={\"k\":[1]}", "s=A\n😀\u{fffd}/é"]
    );
    assert_eq!(frame.ext("n").as_deref(), Some("42"));
    assert_eq!(frame.ext("x"), None);
    assert_eq!(&frame.body[..], b"x");
}

#[test]
fn unescaped_values_borrow_from_the_frame() {
    let frame = decode(&json_frame(
        r#"{"code":1,"extFields":{"plain":"abc","escaped":"a\tc"}}"#,
        b"",
    ));
    assert!(matches!(frame.ext("plain"), Some(Cow::Borrowed("abc"))));
    assert!(matches!(frame.ext("escaped"), Some(Cow::Owned(text)) if text == "a\tc"));
}

#[test]
fn malformed_headers_are_errors_with_a_place() {
    let broken = [
        "",
        "{",
        "[]",
        "{}",
        "{\"code\"}",
        "{\"code\":}",
        "{\"code\":x1}",
        "{\"code\":99999999999}",
        "{\"code\":1,}",
        "{\"code\":1",
        "{\"code\":1}x",
        "{\"code\":1,\"extFields\":7}",
        "{\"code\":1,\"extFields\":{\"a\"}}",
        "{\"code\":1,\"extFields\":{\"a\":\"b}}",
        "{\"code\":1,\"z\":[[[",
        "{\"code\":1,\"remark\":\"\\",
    ];
    for header in broken {
        let error = Frame::decode(&mut BytesMut::from(&json_frame(header, b"")[..]), MAX_FRAME)
            .unwrap_err();
        assert!(
            matches!(error, FrameError::Header { offset, .. } if offset <= header.len()),
            "{header:?}: {error}"
        );
    }
}

#[test]
fn incomplete_frames_wait_and_impossible_ones_fail() {
    let whole = json_frame("{\"code\":1}", b"body");
    for len in 0..whole.len() {
        let mut buf = BytesMut::from(&whole[..len]);
        assert!(Frame::decode(&mut buf, MAX_FRAME).unwrap().is_none());
        assert_eq!(buf.len(), len);
    }
    let fails = |bytes: &[u8], limit| Frame::decode(&mut BytesMut::from(bytes), limit).unwrap_err();
    assert!(
        matches!(fails(&whole, whole.len() - 1), FrameError::TooLong { len, .. } if len == whole.len())
    );
    assert!(matches!(
        fails(&[0xFF; 8], MAX_FRAME),
        FrameError::Length { announced: -1 }
    ));
    assert!(matches!(
        fails(&[0, 0, 0, 3, 0, 0, 0], MAX_FRAME),
        FrameError::Length { announced: 3 }
    ));
    assert!(matches!(
        fails(&[0, 0, 0, 4, 0, 0, 0, 1], MAX_FRAME),
        FrameError::HeaderLength {
            header: 1,
            frame: 4
        }
    ));
    assert!(matches!(
        fails(&[0, 0, 0, 4, 2, 0, 0, 0], MAX_FRAME),
        FrameError::Form { form: 2 }
    ));
    // The first bytes of a TLS handshake.
    assert!(matches!(
        fails(&[0x16, 3, 1, 2, 0, 1], MAX_FRAME),
        FrameError::TooLong { .. }
    ));
}

/// Reads everything a frame has to offer.
fn exhaust(bytes: &[u8]) {
    let mut buf = BytesMut::from(bytes);
    while let Ok(Some(frame)) = Frame::decode(&mut buf, MAX_FRAME) {
        _ = ext_map(&frame);
        _ = frame.header::<crate::headers::SendHeader<'_>>();
        _ = frame.header::<crate::headers::PullHeader<'_>>();
        _ = frame.header::<crate::headers::RegisterBrokerHeader<'_>>();
    }
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        exhaust(&bytes);
        for form in 0..2 {
            let len = u32::try_from(bytes.len()).unwrap();
            let mut framed = Vec::new();
            framed.put_u32(4 + len);
            framed.put_u32(form << 24 | len);
            framed.put_slice(&bytes);
            exhaust(&framed);
        }
    }

    #[test]
    fn json_like_text_never_panics(header in r#"[{}\[\]:,"\\a-u0-9 ]{0,80}"#) {
        exhaust(&json_frame(&header, b""));
        exhaust(&json_frame(&format!("{{\"code\":1,\"extFields\":{{{header}"), b""));
    }

    #[test]
    fn any_field_survives_the_wire(
        fields in prop::collection::vec((any::<String>(), any::<String>()), 0..8),
        remark in any::<String>(), opaque: i32, code: i32, body in prop::collection::vec(any::<u8>(), 0..50),
    ) {
        let mut reply = Reply::error(ResponseCode(code), remark.clone()).body(body.clone());
        for (name, value) in &fields {
            reply.ext.put(name, value);
        }
        for frame in [decode(&encode_reply(&reply, opaque)), Frame::of_reply(&reply, opaque)] {
            prop_assert_eq!(frame.head.code, code);
            prop_assert_eq!(frame.head.opaque, opaque);
            prop_assert_eq!(frame.head.remark.as_deref().unwrap_or_default(), &remark);
            let read: Vec<_> = frame.ext_fields().map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
            prop_assert_eq!(&read, &fields);
            prop_assert_eq!(&frame.body[..], &body[..]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn damaged_recorded_frames_never_panic(seed in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte: u8) {
        thread_local!(static GOLDEN: Vec<Golden> = golden());
        GOLDEN.with(|golden| {
            let mut bytes = seed.get(golden).bytes.clone();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            exhaust(&bytes);
            bytes.truncate(at);
            exhaust(&bytes);
        });
    }
}
