//! A broker that is down although the name server still lists it: it takes heartbeats, and hangs up on whoever sends.
//!
//! ```text
//! Phantom::join ─▶ REGISTER_BROKER ─▶ name server (listed while the connection stands)
//! client ─ SEND ─▶ noted in Tries, connection closed
//! ```

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bindery_protocol::bodies::{self, RegisterBrokerBody, TopicConfig, TopicConfigTable};
use bindery_protocol::codes::{RequestCode, ResponseCode};
use bindery_protocol::frame::{Frame, Reply, Request};
use bindery_protocol::headers::{RegisterBrokerHeader, UnregisterBrokerHeader};
use bindery_protocol::message::record::body_crc;
use bindery_remoting::{
    Clock, ConnectOptions, Connection, Responder, Server, ServerOptions, Service,
};
use bindery_tests::NullService;

const PATIENCE: Duration = Duration::from_secs(30);

/// Names of the phantoms that were sent to, in order. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tries(Arc<Mutex<Vec<String>>>);

impl Tries {
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn clear(&self) {
        self.0.lock().unwrap().clear();
    }
}

/// A listed broker that is down.
pub(crate) struct Phantom {
    name: String,
    server: Server,
    listed: Connection,
}

struct HangsUp {
    name: String,
    tries: Tries,
}

impl Service for HangsUp {
    fn request(&self, connection: &Connection, frame: Frame, responder: Responder) {
        let sends = [
            RequestCode::SEND_MESSAGE,
            RequestCode::SEND_MESSAGE_V2,
            RequestCode::SEND_BATCH_MESSAGE,
        ];
        if sends.contains(&frame.request_code()) {
            self.tries.0.lock().unwrap().push(self.name.clone());
            connection.close();
        } else {
            responder.send(Reply::ok());
        }
    }
}

impl Phantom {
    /// Lists a broker of this name with four queues of `topic`.
    pub(crate) async fn join(name_server: &str, name: &str, topic: &str, tries: &Tries) -> Self {
        let service = HangsUp {
            name: name.to_owned(),
            tries: tries.clone(),
        };
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let options = ServerOptions::new(Clock::system());
        let server = Server::bind(any_port, options, Arc::new(service))
            .await
            .unwrap();
        let listed = Connection::connect(
            name_server,
            ConnectOptions::default(),
            Arc::new(NullService),
        )
        .await
        .unwrap();
        // A name server takes a single topic for an addition to a broker that it must know already.
        let topics = [topic, name].map(|topic| {
            let config = TopicConfig {
                topic_name: topic.to_owned(),
                read_queue_nums: 4,
                write_queue_nums: 4,
                ..TopicConfig::default()
            };
            (topic.to_owned(), config)
        });
        let body = bodies::to_vec(&RegisterBrokerBody {
            topic_config_serialize_wrapper: TopicConfigTable {
                topic_config_table: topics.into(),
                ..TopicConfigTable::default()
            },
            ..RegisterBrokerBody::default()
        })
        .unwrap();
        let header = RegisterBrokerHeader {
            broker_name: name.into(),
            broker_addr: server.local_addr().to_string().into(),
            cluster_name: "phantoms".into(),
            ha_server_addr: "127.0.0.1:1".into(),
            body_crc32: body_crc(&body),
            ..RegisterBrokerHeader::default()
        };
        let request = Request::new(RequestCode::REGISTER_BROKER)
            .with(&header)
            .body(body);
        let answer = listed.call(request, PATIENCE).await.unwrap();
        assert_eq!(
            answer.response_code(),
            ResponseCode::SUCCESS,
            "{:?}",
            answer.head.remark
        );
        Self {
            name: name.to_owned(),
            server,
            listed,
        }
    }

    pub(crate) async fn leave(self) {
        let header = UnregisterBrokerHeader {
            broker_name: self.name.as_str().into(),
            broker_addr: self.server.local_addr().to_string().into(),
            cluster_name: "phantoms".into(),
            broker_id: 0,
        };
        let request = Request::new(RequestCode::UNREGISTER_BROKER).with(&header);
        self.listed.call(request, PATIENCE).await.unwrap();
        self.listed.close();
        self.server.shutdown().await;
    }
}
