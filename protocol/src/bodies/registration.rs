//! A broker's registration, plain and compressed.
//!
//! ```text
//! plain       JSON
//! compressed  zlib( DataVersion │ n × "topic read write perm filter {attributes}" │ filter servers │ m × mapping )
//!             each text with its length (i32) before it, n and m i32, JSON where not shown otherwise
//! ```
//!
//! Mirrors `RegisterBrokerBody` of Apache RocketMQ 5.3.3.

use std::io::Read as _;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{
    BodyError, QueueMappingInfo, TopicConfig, TopicConfigTable, TopicFilterType, from_slice,
};

/// A compressed registration may inflate to so much: 64 MiB, some 400,000 topics.
const INFLATED_LIMIT: u64 = 64 * 1024 * 1024;
/// Version from which the body is more than the table of topics.
const WITH_FILTER_SERVERS: i32 = 37;
/// Version from which a compressed body has mappings: `V5_0_0`.
const WITH_MAPPINGS: i32 = 413;

/// The body of 103.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RegisterBrokerBody {
    /// Historic.
    pub filter_server_list: Vec<String>,
    /// The broker's topics, all or only the changed ones.
    pub topic_config_serialize_wrapper: TopicConfigTable,
}

impl RegisterBrokerBody {
    /// Reads the body of a registration from a broker of that version. An empty body is an empty table.
    ///
    /// # Errors
    /// [`BodyError`] when it does not inflate, is cut off, or is not the JSON expected.
    pub fn read(body: &[u8], compressed: bool, version: i32) -> Result<Self, BodyError> {
        if body.is_empty() {
            return Ok(Self::default());
        }
        if version < WITH_FILTER_SERVERS {
            return Ok(Self {
                filter_server_list: Vec::new(),
                topic_config_serialize_wrapper: from_slice(body)?,
            });
        }
        if compressed {
            Self::read_inflated(&inflate(body)?, version)
        } else {
            from_slice(body)
        }
    }

    fn read_inflated(bytes: &[u8], version: i32) -> Result<Self, BodyError> {
        let mut parts = Parts { bytes, at: 0 };
        let mut table = TopicConfigTable {
            data_version: parts.json()?,
            ..TopicConfigTable::default()
        };
        for _ in 0..parts.count("a count of topics")? {
            let topic = parts.topic()?;
            table
                .topic_config_table
                .insert(topic.topic_name.clone(), topic);
        }
        let filter_server_list = parts.json()?;
        if version >= WITH_MAPPINGS {
            for _ in 0..parts.count("a count of mappings")? {
                let mapping: QueueMappingInfo = parts.json()?;
                table
                    .topic_queue_mapping_info_map
                    .insert(mapping.topic.clone(), mapping);
            }
        }
        Ok(Self {
            filter_server_list,
            topic_config_serialize_wrapper: table,
        })
    }
}

fn inflate(body: &[u8]) -> Result<Vec<u8>, BodyError> {
    let mut inflated = Vec::new();
    let mut reader = flate2::read::ZlibDecoder::new(body).take(INFLATED_LIMIT + 1);
    reader
        .read_to_end(&mut inflated)
        .map_err(BodyError::Inflate)?;
    if reader.limit() == 0 {
        Err(BodyError::Inflated {
            limit: INFLATED_LIMIT,
        })
    } else {
        Ok(inflated)
    }
}

struct Parts<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Parts<'a> {
    fn count(&mut self, expected: &'static str) -> Result<usize, BodyError> {
        let error = BodyError::Registration {
            offset: self.at,
            expected,
        };
        let Some(word) = self
            .bytes
            .get(self.at..)
            .and_then(|rest| rest.first_chunk::<4>())
        else {
            return Err(error);
        };
        self.at += 4;
        usize::try_from(i32::from_be_bytes(*word)).or(Err(error))
    }

    fn text(&mut self) -> Result<&'a [u8], BodyError> {
        let len = self.count("a length")?;
        let Some(text) = self.bytes.get(self.at..).and_then(|rest| rest.get(..len)) else {
            return Err(BodyError::Registration {
                offset: self.at,
                expected: "as many bytes as announced",
            });
        };
        self.at += len;
        Ok(text)
    }

    fn json<T: DeserializeOwned>(&mut self) -> Result<T, BodyError> {
        from_slice(self.text()?)
    }

    fn topic(&mut self) -> Result<TopicConfig, BodyError> {
        let offset = self.at;
        let line = String::from_utf8_lossy(self.text()?);
        let mut words = line.splitn(6, ' ');
        let mut next = || {
            words.next().ok_or(BodyError::Registration {
                offset,
                expected: "five words of a topic",
            })
        };
        let number = |word: &str| {
            word.parse().or(Err(BodyError::Registration {
                offset,
                expected: "a number",
            }))
        };
        let mut topic = TopicConfig {
            topic_name: next()?.to_owned(),
            read_queue_nums: number(next()?)?,
            write_queue_nums: number(next()?)?,
            perm: number(next()?)?,
            topic_filter_type: TopicFilterType::from_name(next()?).ok_or(
                BodyError::Registration {
                    offset,
                    expected: "a filter type",
                },
            )?,
            ..TopicConfig::default()
        };
        if let Some(attributes) = words.next().filter(|text| !text.trim().is_empty()) {
            topic.attributes = from_slice(attributes.as_bytes())?;
        }
        Ok(topic)
    }
}
