//! The whole crate over real sockets on loopback: what crosses a connection, what ends it, what it may cost.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bindery_protocol::{
    codes::{RequestCode, ResponseCode},
    frame::{Frame, Reply, Request, encode_request_head},
};
use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinSet,
};

use crate::{
    Budget, Clock, ConnectOptions, Connection, ManualClock, RemotingError, Responder, Server,
    ServerOptions, Service, lock,
};

const PATIENCE: Duration = Duration::from_secs(10);

const ECHO: i32 = 1;
const HOLD: i32 = 2;
const RELEASE: i32 = 3;
const CALL_BACK: i32 = 4;
const COUNT: i32 = 5;
const PANIC: i32 = 6;
const LARGE: i32 = 7;
const DROP: i32 = 8;

/// Answers by code; keeps what the tests look at.
#[derive(Default)]
struct Peer {
    held: Mutex<Vec<Responder>>,
    oneways: AtomicUsize,
    requests: AtomicUsize,
    batches: AtomicUsize,
    most_queued: AtomicUsize,
    connected: AtomicUsize,
    disconnected: AtomicUsize,
    tasks: Mutex<JoinSet<()>>,
}

impl Service for Peer {
    fn request(&self, connection: &Connection, frame: Frame, responder: Responder) {
        self.requests.fetch_add(1, Ordering::SeqCst);
        self.most_queued
            .fetch_max(connection.queued_bytes(), Ordering::SeqCst);
        match frame.head.code {
            ECHO => responder.send(Reply::ok().body(frame.body)),
            HOLD => lock(&self.held).push(responder),
            RELEASE => {
                responder.send(Reply::ok());
                for (n, held) in (0_u8..).zip(lock(&self.held).drain(..).rev()) {
                    held.send(Reply::ok().body(vec![n]));
                }
            }
            CALL_BACK => {
                let connection = connection.clone();
                lock(&self.tasks).spawn(async move {
                    let answer = connection
                        .call(request(ECHO).body("ping"), PATIENCE)
                        .await
                        .unwrap();
                    responder.send(Reply::ok().body(answer.body));
                });
            }
            COUNT => _ = self.oneways.fetch_add(1, Ordering::SeqCst),
            PANIC => panic!("as the test asked"),
            LARGE => responder.send(Reply::ok().body(Bytes::from_static(&[1; 16 * 1024]))),
            DROP => drop(responder),
            other => responder.send(Reply::code(ResponseCode(other))),
        }
    }
    fn batch_end(&self, _connection: &Connection) {
        self.batches.fetch_add(1, Ordering::SeqCst);
    }
    fn connected(&self, _connection: &Connection) {
        self.connected.fetch_add(1, Ordering::SeqCst);
    }
    fn disconnected(&self, _connection: &Connection) {
        self.disconnected.fetch_add(1, Ordering::SeqCst);
    }
}

fn request(code: i32) -> Request {
    Request::new(RequestCode(code))
}

fn wire(request: &Request, opaque: i32) -> Vec<u8> {
    let mut buf = BytesMut::new();
    encode_request_head(&mut buf, request, opaque, false);
    buf.extend_from_slice(&request.body);
    buf.to_vec()
}

async fn served(options: ServerOptions) -> (Server, Arc<Peer>) {
    let peer = Arc::new(Peer::default());
    let server = Server::bind(
        "127.0.0.1:0".parse().unwrap(),
        options,
        Arc::clone(&peer) as _,
    )
    .await
    .unwrap();
    (server, peer)
}

async fn connected(server: &Server) -> (Connection, Arc<Peer>) {
    let peer = Arc::new(Peer::default());
    let addr = server.local_addr().to_string();
    let connection = Connection::connect(&addr, ConnectOptions::default(), Arc::clone(&peer) as _)
        .await
        .unwrap();
    (connection, peer)
}

/// Lets the other tasks run until `condition` holds.
async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    assert!(
        tokio::time::timeout(PATIENCE, waiting).await.is_ok(),
        "{what} did not happen"
    );
}

async fn read_frame(stream: &mut TcpStream, buf: &mut BytesMut) -> Option<Frame> {
    loop {
        if let Some(frame) = Frame::decode(buf, 1 << 24).unwrap() {
            return Some(frame);
        }
        match stream.read_buf(buf).await {
            Ok(0) | Err(_) => return None,
            Ok(_) => {}
        }
    }
}

#[tokio::test]
async fn answers_find_their_calls_whatever_their_order() {
    let (server, peer) = served(ServerOptions::new(Clock::system())).await;
    let (connection, _) = connected(&server).await;
    let mut calls = JoinSet::new();
    for _ in 0..3 {
        let connection = connection.clone();
        calls.spawn(async move { connection.call(request(HOLD), PATIENCE).await.unwrap().body });
    }
    until("three held requests", || lock(&peer.held).len() == 3).await;
    connection.call(request(RELEASE), PATIENCE).await.unwrap();
    let mut bodies = calls.join_all().await;
    bodies.sort();
    assert_eq!(bodies, [vec![0], vec![1], vec![2]]);
    assert_eq!(connection.shared.calls.in_flight(), 0);
    server.shutdown().await;
}

#[tokio::test]
async fn the_header_of_a_proxy_is_taken_off_and_its_address_told() {
    let (server, peer) = served(ServerOptions::new(Clock::system())).await;
    let header = b"PROXY TCP4 203.0.113.7 10.0.0.1 4711 10911\r\n";
    let whole = [&header[..], &wire(&request(HOLD), 1)].concat();
    // At once, and in two pieces wherever they part.
    for cut in [0, 1, 6, header.len() - 1, header.len(), header.len() + 2] {
        let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
        stream.write_all(&whole[..cut]).await.unwrap();
        until("the connection", || server.connection_count() == 1).await;
        stream.write_all(&whole[cut..]).await.unwrap();
        until("the request", || !lock(&peer.held).is_empty()).await;
        let held = lock(&peer.held).remove(0);
        let connection = held.connection().clone();
        assert_eq!(connection.origin().to_string(), "203.0.113.7:4711");
        assert_eq!(connection.peer(), stream.local_addr().unwrap());
        assert!(
            !connection.is_from_this_host(),
            "the proxy is, its client is not"
        );
        held.send(Reply::ok());
        let answer = read_frame(&mut stream, &mut BytesMut::new()).await.unwrap();
        assert_eq!(answer.head.opaque, 1);
        drop(stream);
        until("the end", || server.connection_count() == 0).await;
    }
    server.shutdown().await;
}

#[tokio::test]
async fn an_unreadable_header_of_a_proxy_and_a_second_one_close_the_connection() {
    let (server, peer) = served(ServerOptions::new(Clock::system())).await;
    let good = b"PROXY UNKNOWN\r\n";
    for bytes in [&b"PROXY TCP4 nonsense\r\n"[..], &[&good[..], good].concat()] {
        let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let answer = read_frame(&mut stream, &mut BytesMut::new()).await;
        assert!(answer.is_none(), "{answer:?}");
    }
    assert_eq!(peer.requests.load(Ordering::SeqCst), 0);
    server.shutdown().await;
}

#[tokio::test]
async fn both_ends_ask_on_one_connection() {
    let (server, _) = served(ServerOptions::new(Clock::system())).await;
    let (connection, client) = connected(&server).await;
    let answer = connection.call(request(CALL_BACK), PATIENCE).await.unwrap();
    assert_eq!(answer.body, "ping");
    assert_eq!(client.requests.load(Ordering::SeqCst), 1);
    server.shutdown().await;
}

#[tokio::test]
async fn a_oneway_request_is_carried_out_and_never_answered() {
    let (server, peer) = served(ServerOptions::new(Clock::system())).await;
    let (connection, _) = connected(&server).await;
    connection.oneway(request(COUNT)).unwrap();
    connection.oneway(request(ECHO)).unwrap();
    let answer = connection
        .call(request(ECHO).body("after"), PATIENCE)
        .await
        .unwrap();
    assert_eq!(answer.body, "after");
    assert_eq!(peer.oneways.load(Ordering::SeqCst), 1);
    server.shutdown().await;
}

#[tokio::test]
async fn a_call_without_answer_ends_in_time_and_leaves_nothing_behind() {
    let (server, peer) = served(ServerOptions::new(Clock::system())).await;
    let (connection, _) = connected(&server).await;
    let error = connection
        .call(request(HOLD), Duration::from_millis(20))
        .await
        .unwrap_err();
    assert!(matches!(error, RemotingError::Timeout { .. }), "{error}");
    assert_eq!(connection.shared.calls.in_flight(), 0);
    // The late answer is dropped and the connection goes on.
    connection.call(request(RELEASE), PATIENCE).await.unwrap();
    assert_eq!(
        connection
            .call(request(ECHO).body("on"), PATIENCE)
            .await
            .unwrap()
            .body,
        "on"
    );
    assert_eq!(peer.requests.load(Ordering::SeqCst), 3);
    server.shutdown().await;
}

#[tokio::test]
async fn a_dropped_call_is_harmless() {
    let (server, peer) = served(ServerOptions::new(Clock::system())).await;
    let (connection, _) = connected(&server).await;
    let call = connection.call(request(HOLD), PATIENCE);
    tokio::select! {
        biased;
        _ = call => panic!("held requests get no answer"),
        () = until("the request's arrival", || lock(&peer.held).len() == 1) => {}
    }
    assert_eq!(connection.shared.calls.in_flight(), 0);
    connection.call(request(RELEASE), PATIENCE).await.unwrap();
    assert_eq!(
        connection
            .call(request(ECHO).body("on"), PATIENCE)
            .await
            .unwrap()
            .body,
        "on"
    );
    server.shutdown().await;
}

#[tokio::test]
async fn closing_ends_the_calls_that_wait() {
    let (server, peer) = served(ServerOptions::new(Clock::system())).await;
    let (connection, _) = connected(&server).await;
    let call = connection.call(request(HOLD), PATIENCE);
    let closing = async {
        until("the request's arrival", || lock(&peer.held).len() == 1).await;
        connection.close();
    };
    let (outcome, ()) = tokio::join!(call, closing);
    assert!(matches!(outcome, Err(RemotingError::Closed { .. })));
    connection.closed().await;
    assert!(connection.is_closed());
    assert!(matches!(
        connection.call(request(ECHO), PATIENCE).await,
        Err(RemotingError::Closed { .. })
    ));
    assert!(matches!(
        connection.oneway(request(ECHO)),
        Err(RemotingError::Closed { .. })
    ));
    until("the server's notice", || {
        peer.disconnected.load(Ordering::SeqCst) == 1
    })
    .await;
    until("the table's notice", || server.connection_count() == 0).await;
    server.shutdown().await;
}

#[tokio::test]
async fn a_connection_that_nobody_holds_any_more_is_closed() {
    let (server, peer) = served(ServerOptions::new(Clock::system())).await;
    let (connection, client) = connected(&server).await;
    let other = connection.clone();
    drop(connection);
    let answer = other.call(request(CALL_BACK), PATIENCE).await.unwrap();
    assert_eq!(answer.body, "ping");
    // What is queued is still written.
    other.oneway(request(COUNT)).unwrap();
    drop(other);
    until("the end of both", || {
        let ended = |peer: &Peer| peer.disconnected.load(Ordering::SeqCst) == 1;
        ended(&peer) && ended(&client)
    })
    .await;
    assert_eq!(peer.oneways.load(Ordering::SeqCst), 1);
    server.shutdown().await;
}

#[tokio::test]
async fn shutdown_of_the_server_ends_calls_and_connections() {
    let (server, peer) = served(ServerOptions::new(Clock::system())).await;
    let (connection, client) = connected(&server).await;
    let call = connection.call(request(HOLD), PATIENCE);
    let stopping = async {
        until("the request's arrival", || lock(&peer.held).len() == 1).await;
        server.shutdown().await;
        assert_eq!(peer.disconnected.load(Ordering::SeqCst), 1);
    };
    let (outcome, ()) = tokio::join!(call, stopping);
    assert!(matches!(outcome, Err(RemotingError::Closed { .. })));
    connection.closed().await;
    assert_eq!(
        (
            client.connected.load(Ordering::SeqCst),
            client.disconnected.load(Ordering::SeqCst)
        ),
        (1, 1)
    );
}

#[tokio::test]
async fn answers_queued_before_the_close_are_still_written() {
    let (server, _) = served(ServerOptions::new(Clock::system())).await;
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    let mut many = Vec::new();
    for opaque in 0..500 {
        many.extend(wire(&request(LARGE), opaque));
    }
    stream.write_all(&many).await.unwrap();
    // A peer that closes only its sending half reads all its answers.
    stream.shutdown().await.unwrap();
    let mut buf = BytesMut::new();
    for opaque in 0..500 {
        assert_eq!(
            read_frame(&mut stream, &mut buf).await.unwrap().head.opaque,
            opaque
        );
    }
    assert!(read_frame(&mut stream, &mut buf).await.is_none());
    server.shutdown().await;
}

#[tokio::test]
async fn a_half_closed_peer_gets_the_answer_that_takes_its_time() {
    let (server, peer) = served(ServerOptions::new(Clock::system())).await;
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    stream.write_all(&wire(&request(HOLD), 7)).await.unwrap();
    stream.shutdown().await.unwrap();
    until("the request's arrival", || lock(&peer.held).len() == 1).await;
    lock(&peer.held)
        .pop()
        .unwrap()
        .send(Reply::ok().body("late"));
    let answer = read_frame(&mut stream, &mut BytesMut::new()).await.unwrap();
    assert_eq!((answer.head.opaque, answer.body), (7, Bytes::from("late")));
    server.shutdown().await;
}

#[tokio::test]
async fn garbage_closes_its_connection_and_no_other() {
    let (server, _) = served(ServerOptions::new(Clock::system())).await;
    let (good, _) = connected(&server).await;
    for garbage in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0xff; 64],
        &[0, 0, 0, 12, 9, 0, 0, 4, 1, 2, 3, 4, 0, 0, 0, 0],
    ] {
        let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
        // A good request in front is still answered.
        let mut bytes = wire(&request(ECHO).body("first"), 1);
        bytes.extend_from_slice(garbage);
        stream.write_all(&bytes).await.unwrap();
        let mut buf = BytesMut::new();
        assert_eq!(
            read_frame(&mut stream, &mut buf).await.unwrap().body,
            "first"
        );
        assert!(
            read_frame(&mut stream, &mut buf).await.is_none(),
            "{garbage:?}"
        );
    }
    assert_eq!(
        good.call(request(ECHO).body("good"), PATIENCE)
            .await
            .unwrap()
            .body,
        "good"
    );
    until("the others' end", || server.connection_count() == 1).await;
    server.shutdown().await;
}

#[tokio::test]
async fn a_malformed_answer_fails_the_call_with_its_reason() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let rude = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream
            .read_buf(&mut BytesMut::with_capacity(512))
            .await
            .unwrap();
        stream.write_all(&[0x7f; 32]).await.unwrap();
        stream
    };
    let calling = async {
        let peer = Arc::new(Peer::default());
        let connection = Connection::connect(&addr, ConnectOptions::default(), peer as _)
            .await
            .unwrap();
        connection.call(request(ECHO), PATIENCE).await
    };
    let (outcome, _stream) = tokio::join!(calling, rude);
    assert!(
        matches!(outcome, Err(RemotingError::Frame { .. })),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_panic_in_the_service_closes_that_connection_only() {
    let (server, peer) = served(ServerOptions::new(Clock::system())).await;
    let (good, _) = connected(&server).await;
    let (bad, _) = connected(&server).await;
    let outcome = bad.call(request(PANIC), PATIENCE).await;
    assert!(matches!(outcome, Err(RemotingError::Closed { .. })));
    until("its end", || peer.disconnected.load(Ordering::SeqCst) == 1).await;
    assert_eq!(
        good.call(request(ECHO).body("on"), PATIENCE)
            .await
            .unwrap()
            .body,
        "on"
    );
    server.shutdown().await;
}

#[tokio::test]
async fn requests_of_one_read_are_one_batch() {
    let (server, peer) = served(ServerOptions::new(Clock::system())).await;
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    let mut many = Vec::new();
    for opaque in 0..20 {
        many.extend(wire(&request(ECHO).body("x"), opaque));
    }
    assert!(many.len() < 4096, "they must fit one read");
    stream.write_all(&many).await.unwrap();
    let mut buf = BytesMut::new();
    for opaque in 0..20 {
        assert_eq!(
            read_frame(&mut stream, &mut buf).await.unwrap().head.opaque,
            opaque
        );
    }
    assert_eq!(peer.batches.load(Ordering::SeqCst), 1);
    server.shutdown().await;
}

#[tokio::test]
async fn frames_cut_anywhere_and_frames_larger_than_any_buffer_arrive_whole() {
    let (server, _) = served(ServerOptions::new(Clock::system())).await;
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let mut buf = BytesMut::new();
    for byte in wire(&request(ECHO).body("slow"), 1) {
        stream.write_all(&[byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(
        read_frame(&mut stream, &mut buf).await.unwrap().body,
        "slow"
    );
    let (connection, _) = connected(&server).await;
    let body: Bytes = (0..5_000_000_u32)
        .map(|n| n.to_le_bytes()[0])
        .collect::<Vec<_>>()
        .into();
    assert_eq!(
        connection
            .call(request(ECHO).body(body.clone()), PATIENCE)
            .await
            .unwrap()
            .body,
        body
    );
    server.shutdown().await;
}

#[tokio::test]
async fn a_peer_that_does_not_read_cannot_grow_the_queue() {
    const LIMIT: usize = 256 * 1024;
    const REQUESTS: i32 = 4_000;
    let options = ServerOptions {
        max_queued_bytes: LIMIT,
        ..ServerOptions::new(Clock::system())
    };
    let (server, peer) = served(options).await;
    let (mut read, mut write) = TcpStream::connect(server.local_addr())
        .await
        .unwrap()
        .into_split();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        for opaque in 0..REQUESTS {
            write
                .write_all(&wire(&request(LARGE), opaque))
                .await
                .unwrap();
        }
    });
    // 4,000 answers of 16 KiB are 64 MiB: far more than the limit and both socket buffers hold.
    until("a full queue", || {
        peer.most_queued.load(Ordering::SeqCst) > LIMIT / 2 - 17 * 1024
    })
    .await;
    let mut buf = BytesMut::new();
    let mut answers = 0;
    while answers < REQUESTS {
        assert!(read.read_buf(&mut buf).await.unwrap() > 0);
        while let Some(frame) = Frame::decode(&mut buf, 1 << 24).unwrap() {
            assert_eq!(frame.head.opaque, answers);
            answers += 1;
        }
    }
    // Requests wait while answers do, so none is lost, and one answer more than half the limit is the most.
    assert!(peer.most_queued.load(Ordering::SeqCst) <= LIMIT / 2 + 17 * 1024);
    server.shutdown().await;
}

/// A connection that asks for so many large answers and reads none.
async fn deaf(server: &Server, requests: i32) -> TcpStream {
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    for opaque in 0..requests {
        stream
            .write_all(&wire(&request(LARGE), opaque))
            .await
            .unwrap();
    }
    stream
}

#[tokio::test]
async fn peers_that_do_not_read_share_one_bound_and_are_closed_when_room_is_wanted() {
    const BUDGET: usize = 4 << 20;
    let (clock, hands) = Clock::manual(0);
    let budget = Budget::new(BUDGET);
    let options = ServerOptions {
        budget: budget.clone(),
        ..ServerOptions::new(clock)
    };
    let (server, _) = served(options).await;
    // The kernel takes some megabytes for each; what it does not take counts.
    let mut all = Vec::new();
    while budget.excess() == 0 {
        all.push(deaf(&server, 1000).await);
        assert!(all.len() < 200, "{} bytes queued", budget.used());
    }
    assert!(budget.used() <= BUDGET, "{}", budget.used());
    let (reader, _) = connected(&server).await;
    let large = reader.call(request(LARGE), PATIENCE).await.unwrap();
    assert_eq!(large.body.len(), 16 * 1024, "whoever reads is served");
    let before = server.connection_count();
    // Time passes in steps, the reader goes on reading meanwhile.
    for _ in 0..4 {
        hands.wait_for_sleepers(1).await;
        hands.advance(Duration::from_secs(5));
        reader.call(request(ECHO), PATIENCE).await.unwrap();
    }
    until("room", || budget.excess() == 0).await;
    assert!(server.connection_count() < before);
    reader.call(request(ECHO), PATIENCE).await.unwrap();
    drop(all);
    until("the end of all others", || server.connection_count() == 1).await;
    until("nothing queued", || budget.used() == 0).await;
    server.shutdown().await;
}

#[tokio::test]
async fn calls_to_a_peer_that_does_not_read_are_refused_as_busy() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let options = ConnectOptions {
        max_queued_bytes: 1 << 20,
        ..ConnectOptions::default()
    };
    let connection = Connection::connect(&addr, options, Arc::new(Peer::default()))
        .await
        .unwrap();
    let (_deaf, _) = listener.accept().await.unwrap();
    let refused = async {
        loop {
            if let Err(error) = connection.oneway(request(COUNT).body(vec![0; 64 * 1024])) {
                return error;
            }
            tokio::task::yield_now().await;
        }
    };
    let error = tokio::time::timeout(PATIENCE, refused).await.unwrap();
    assert!(matches!(error, RemotingError::Busy { .. }), "{error}");
    assert!(connection.queued_bytes() <= 1 << 20);
    connection.close();
    connection.closed().await;
}

async fn idle_server() -> (Server, Arc<Peer>, Clock, ManualClock) {
    let (clock, hands) = Clock::manual(0);
    let (server, peer) = served(ServerOptions::new(clock.clone())).await;
    (server, peer, clock, hands)
}

#[tokio::test]
async fn a_connection_silent_for_two_minutes_is_closed_and_a_busy_one_is_kept() {
    let (server, peer, clock, hands) = idle_server().await;
    let (silent, _) = connected(&server).await;
    let (busy, _) = connected(&server).await;
    until("both connections", || server.connection_count() == 2).await;
    hands.wait_for_sleepers(1).await;
    hands.advance(Duration::from_secs(119));
    busy.call(request(ECHO), PATIENCE).await.unwrap();
    assert_eq!(peer.disconnected.load(Ordering::SeqCst), 0);
    hands.wait_for_sleepers(1).await;
    hands.advance(Duration::from_secs(10));
    silent.closed().await;
    busy.call(request(ECHO), PATIENCE).await.unwrap();
    assert_eq!(
        (server.connection_count(), clock.now_millis()),
        (1, 129_000)
    );
    server.shutdown().await;
}

#[tokio::test]
async fn a_server_without_connections_sleeps_without_a_timer() {
    let (server, _, _, hands) = idle_server().await;
    tokio::task::yield_now().await;
    assert_eq!(hands.sleepers(), 0);
    let (connection, _) = connected(&server).await;
    hands.wait_for_sleepers(1).await;
    assert_eq!(hands.next_due(), Some(120_000));
    connection.close();
    server.shutdown().await;
    assert_eq!(hands.sleepers(), 0);
}

#[tokio::test]
async fn an_unreachable_peer_is_a_connect_error_with_its_cause() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    drop(listener);
    let connecting = |addr: String| async move {
        Connection::connect(&addr, ConnectOptions::default(), Arc::new(Peer::default()))
            .await
            .unwrap_err()
    };
    let RemotingError::Connect {
        addr: tried,
        source,
    } = connecting(addr.clone()).await
    else {
        panic!("wrong kind")
    };
    assert_eq!(
        (tried, source.kind()),
        (addr, io::ErrorKind::ConnectionRefused)
    );
    assert!(matches!(
        connecting("no port".to_owned()).await,
        RemotingError::Connect { .. }
    ));
}

#[tokio::test]
async fn names_and_ipv6_addresses_are_reached() {
    let (server, _) = served(ServerOptions::new(Clock::system())).await;
    let by_name = format!("localhost:{}", server.local_addr().port());
    let connection = Connection::connect(
        &by_name,
        ConnectOptions::default(),
        Arc::new(Peer::default()),
    )
    .await
    .unwrap();
    assert_eq!(
        connection
            .call(request(ECHO).body("n"), PATIENCE)
            .await
            .unwrap()
            .body,
        "n"
    );
    server.shutdown().await;

    let peer = Arc::new(Peer::default());
    let bound = Server::bind(
        "[::1]:0".parse().unwrap(),
        ServerOptions::new(Clock::system()),
        peer as _,
    )
    .await;
    // A machine without IPv6 has nothing to test here.
    let Ok(server) = bound else { return };
    let addr = server.local_addr().to_string();
    let connection =
        Connection::connect(&addr, ConnectOptions::default(), Arc::new(Peer::default()))
            .await
            .unwrap();
    assert_eq!(
        connection
            .call(request(ECHO).body("6"), PATIENCE)
            .await
            .unwrap()
            .body,
        "6"
    );
    server.shutdown().await;
}

#[tokio::test]
async fn a_request_whose_responder_is_dropped_stays_unanswered_and_the_connection_open() {
    let (server, _) = served(ServerOptions::new(Clock::system())).await;
    let (connection, _) = connected(&server).await;
    let error = connection
        .call(request(DROP), Duration::from_millis(20))
        .await
        .unwrap_err();
    assert!(matches!(error, RemotingError::Timeout { .. }));
    assert!(!connection.is_closed());
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_calls_of_many_tasks_all_get_their_own_answers() {
    let (server, peer) = served(ServerOptions::new(Clock::system())).await;
    let (connection, _) = connected(&server).await;
    let (done, mut results) = mpsc::channel(64);
    let mut tasks = JoinSet::new();
    for task in 0..64_u32 {
        let (connection, done) = (connection.clone(), done.clone());
        tasks.spawn(async move {
            for n in 0..50_u32 {
                let body = Bytes::from(vec![
                    task.to_le_bytes()[0];
                    usize::try_from(n * 37 % 1500).unwrap()
                ]);
                let answer = connection
                    .call(request(ECHO).body(body.clone()), PATIENCE)
                    .await
                    .unwrap();
                done.send(answer.body == body).await.unwrap();
            }
        });
    }
    drop(done);
    let mut count = 0;
    while let Some(right) = results.recv().await {
        assert!(right);
        count += 1;
    }
    assert_eq!(count, 64 * 50);
    assert_eq!(peer.requests.load(Ordering::SeqCst), count);
    server.shutdown().await;
}

#[tokio::test]
async fn a_responder_made_for_a_test_delivers_its_answer() {
    let (responder, answer) = Responder::for_test();
    assert!(!responder.is_oneway());
    responder.send(Reply::error(ResponseCode(17), "no route"));
    assert_eq!(answer.await.unwrap().code, ResponseCode(17));
}
