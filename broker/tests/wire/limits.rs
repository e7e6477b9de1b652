//! What clients may leave out, get wrong, and send too much of.
use std::time::Duration;

use bindery_protocol::{
    codes::{RequestCode, ResponseCode},
    frame::{Frame, Request},
};
use bytes::BytesMut;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{Fixture, PATIENCE, send_request};

/// A send in the short form with only the mandatory letters, those in `changed` replaced or left out (empty).
fn short_send(changed: &[(&str, &str)]) -> Request {
    let mut request = Request::new(RequestCode::SEND_MESSAGE_V2).body("x".as_bytes().to_vec());
    for (name, value) in ["a", "b", "c", "d", "e", "f", "g", "h"]
        .into_iter()
        .zip(["PG", "T", "TBW102", "4", "0", "0", "7", "0"])
    {
        let value = changed
            .iter()
            .find(|(letter, _)| *letter == name)
            .map_or(value, |(_, value)| *value);
        if !value.is_empty() {
            request.ext.put(name, value);
        }
    }
    request
}

#[tokio::test]
async fn l05_what_can_not_be_read_is_answered_with_the_field_and_the_connection_goes_on() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    let body = |code, text: &str| Request::new(code).body(text.as_bytes().to_vec());
    for (request, field) in [
        (short_send(&[("b", "")]), "topic"),
        (short_send(&[("e", "first")]), "queueId"),
        (short_send(&[("e", "2147483648")]), "queueId"),
        (Request::new(RequestCode::PULL_MESSAGE), "consumerGroup"),
        (Request::new(RequestCode::GET_MAX_OFFSET), "topic"),
        (
            body(
                RequestCode::HEART_BEAT,
                r#"{"clientID":"c","producerDataSet":[{"groupName":7}]}"#,
            ),
            "producerDataSet[0].groupName",
        ),
        (body(RequestCode::HEART_BEAT, r#"{"clientID":"#), "clientID"),
        (
            body(
                RequestCode::LOCK_BATCH_MQ,
                r#"{"consumerGroup":"g","clientId":"c","mqSet":3}"#,
            ),
            "mqSet",
        ),
    ] {
        let remark = peer.refused(request, ResponseCode::SYSTEM_ERROR).await;
        assert!(remark.contains(field), "{field}: {remark}");
    }
    assert_eq!(peer.send("T", 0, "goes on", "").await.0, 0);
}

#[tokio::test]
async fn l06_a_short_send_header_may_leave_out_the_last_six_letters() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.ok(short_send(&[])).await;
    let message = peer.pull("T", 0, 0).await.messages.remove(0);
    assert_eq!((message.reconsume_times, message.flag), (0, 0));
    // To a retry topic too, where three of them mean something: the group's own limit holds then.
    peer.consume("G", "c", "T", "*").await;
    peer.ok(short_send(&[("b", "%RETRY%G")])).await;
    assert_eq!(peer.pull("%RETRY%G", 0, 0).await.bodies(), ["x"]);
}

#[tokio::test]
async fn l07_a_body_of_the_limit_passes_and_one_byte_more_is_refused() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    let limit = 4 * 1024 * 1024;
    peer.send("T", 0, &"b".repeat(limit), "").await;
    let above = send_request("T", 0, &"b".repeat(limit + 1), "");
    peer.refused(above, ResponseCode::MESSAGE_ILLEGAL).await;
    assert_eq!(peer.send("T", 0, "next", "").await.0, 1);
}

#[tokio::test]
async fn l07_the_frame_limit_is_another_and_is_kept_from_the_length_word_on() {
    let fixture = Fixture::start().await;
    let mut stream = TcpStream::connect(fixture.broker.local_addr())
        .await
        .unwrap();
    // The largest frame counts its length word; this one would be a byte larger.
    stream
        .write_all(&(16_777_216_u32 - 4 + 1).to_be_bytes())
        .await
        .unwrap();
    let closed = tokio::time::timeout(PATIENCE, stream.read_u8()).await;
    assert!(
        closed.unwrap().is_err(),
        "closed, although nothing but a length came"
    );
    // One of the very limit is waited for: its code is unknown, and that is what is answered.
    let mut stream = TcpStream::connect(fixture.broker.local_addr())
        .await
        .unwrap();
    let header = br#"{"code":9999,"flag":0,"opaque":5}"#;
    let mut frame = Vec::from((16_777_216_u32 - 4).to_be_bytes());
    frame.extend_from_slice(&u32::try_from(header.len()).unwrap().to_be_bytes());
    frame.extend_from_slice(header);
    frame.resize(16_777_216, b'x');
    stream.write_all(&frame).await.unwrap();
    let mut answer = BytesMut::new();
    let answered = tokio::time::timeout(Duration::from_secs(30), async {
        loop {
            if let Some(frame) = Frame::decode(&mut answer, 1 << 24).unwrap() {
                return frame;
            }
            assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0);
        }
    });
    let answered = answered.await.unwrap();
    assert_eq!((answered.head.code, answered.head.opaque), (3, 5));
}
