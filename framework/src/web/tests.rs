//! Routes and actuator of a running application, asked over real HTTP.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::net::SocketAddr;

use axum::Json;
use axum::Router;
use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::binding::{InputState, SendError, SendReceipt, StreamBridge};
use crate::config::LoadOptions;
use crate::handler::State;
use crate::registry::Handler;
use crate::{App, AppHandle};

const CONFIG: &str = "
server: { port: 0, servlet.context-path: /shop }
management.endpoints.web.exposure.include: '*'
management.endpoint.health.show-details: always
spring.cloud.stream:
  default-binder: memory
  bindings:
    input: { destination: orders, group: group }
    output: { destination: orders }
";

#[derive(Debug, Clone)]
struct Name(&'static str);

async fn start() -> (AppHandle, SocketAddr) {
    async fn ignore() {}
    async fn send(bridge: StreamBridge, name: State<Name>) -> Result<Json<SendReceipt>, SendError> {
        bridge.send("output", name.0.0).await.map(Json)
    }
    async fn send_nowhere(bridge: StreamBridge) -> Result<Json<SendReceipt>, SendError> {
        bridge.send("outptu", "x").await.map(Json)
    }
    let routes = Router::new()
        .route("/send", get(send))
        .route("/nowhere", get(send_nowhere));
    let app = App::builder()
        .options(LoadOptions::from_text(CONFIG))
        .without_inventory()
        .output("output")
        .handler(Handler::listen("input").to(ignore))
        .state(Name("hello"))
        .routes(routes)
        .start()
        .await
        .unwrap();
    let port = app.web_address().unwrap().port();
    (app, SocketAddr::from(([127, 0, 0, 1], port)))
}

async fn ask(address: SocketAddr, path: &str) -> (u16, String) {
    request(address, "GET", path, "").await
}

/// Asks for a change of a binding.
async fn post(address: SocketAddr, binding: &str, state: &str) -> (u16, String) {
    let path = format!("/shop/actuator/bindings/{binding}");
    let body = format!("{{\"state\":\"{state}\"}}");
    request(address, "POST", &path, &body).await
}

async fn request(address: SocketAddr, method: &str, path: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (
        head.split(' ').nth(1).unwrap().parse().unwrap(),
        body.to_owned(),
    )
}

#[tokio::test]
async fn routes_stand_under_the_context_path_and_send_through_extractors() {
    let (app, address) = start().await;
    let (code, body) = ask(address, "/shop/send").await;
    assert!(
        code == 200 && body.contains("\"destination\":\"orders\""),
        "{code} {body}"
    );
    assert_eq!(ask(address, "/send").await.0, 404);
    app.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_send_error_is_an_answer_with_a_suggestion() {
    let (app, address) = start().await;
    let (code, body) = ask(address, "/shop/nowhere").await;
    assert!(
        code == 404 && body.contains("did you mean `output`?"),
        "{code} {body}"
    );
    app.shutdown().await.unwrap();
}

#[tokio::test]
async fn the_actuator_tells_health_and_bindings() {
    let (app, address) = start().await;
    app.input("input").unwrap().pause().await;
    let (code, health) = ask(address, "/shop/actuator/health").await;
    assert!(
        code == 200
            && health.contains("\"status\":\"UP\"")
            && health.contains("\"paused\":[\"input\"]"),
        "{health}"
    );
    let (_, bindings) = ask(address, "/shop/actuator/bindings/input").await;
    assert!(
        bindings.contains("\"state\":\"paused\"") && bindings.contains("\"group\":\"group\""),
        "{bindings}"
    );
    assert_eq!(ask(address, "/shop/actuator/bindings/inptu").await.0, 404);
    app.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_stopped_application_listens_no_more() {
    let (app, address) = start().await;
    app.shutdown().await.unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn an_operator_stops_starts_pauses_and_resumes_an_input() {
    let (app, address) = start().await;
    let input = app.input("input").unwrap();
    for (state, answer, after) in [
        ("RESUMED", 204, InputState::Running),
        ("PAUSED", 204, InputState::Paused),
        ("STARTED", 409, InputState::Paused),
        ("RESUMED", 204, InputState::Running),
        ("STOPPED", 204, InputState::Stopped),
        ("STOPPED", 204, InputState::Stopped),
        ("PAUSED", 409, InputState::Stopped),
        ("RESUMED", 409, InputState::Stopped),
        ("STARTED", 204, InputState::Running),
    ] {
        let (code, body) = post(address, "input", state).await;
        assert_eq!((code, input.state()), (answer, after), "{state}: {body}");
    }
    let (code, body) = post(address, "input", "HALTED").await;
    assert!(code == 400 && body.contains("PAUSED"), "{body}");
    let (code, body) = post(address, "inptu", "STARTED").await;
    assert!(
        code == 404 && body.contains("did you mean `input`?"),
        "{body}"
    );
    app.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_stopped_output_takes_no_sends_until_it_is_started() {
    let (app, address) = start().await;
    assert_eq!(post(address, "output", "STOPPED").await.0, 204);
    assert_eq!(ask(address, "/shop/send").await.0, 503);
    let (_, shown) = ask(address, "/shop/actuator/bindings/output").await;
    assert!(shown.contains("\"state\":\"stopped\""), "{shown}");
    assert_eq!(post(address, "output", "PAUSED").await.0, 409);
    assert_eq!(post(address, "output", "STARTED").await.0, 204);
    assert_eq!(ask(address, "/shop/send").await.0, 200);
    app.shutdown().await.unwrap();
}

#[tokio::test]
async fn channels_show_what_differs_from_the_defaults() {
    let (app, address) = start().await;
    let (code, body) = ask(address, "/shop/actuator/channels").await;
    assert_eq!(code, 200);
    let body = body.split("\r\n\r\n").last().unwrap_or(&body);
    let channels: serde_json::Value = serde_json::from_str(body.trim()).unwrap();
    assert_eq!(
        channels,
        serde_json::json!({
            "inputs": { "input": { "destination": "orders", "group": "group" } },
            "outputs": { "output": { "destination": "orders" } },
        })
    );
    assert_eq!(ask(address, "/shop/actuator/health/liveness").await.0, 200);
    assert_eq!(ask(address, "/shop/actuator/health/readiness").await.0, 200);
    app.shutdown().await.unwrap();
}
