//! As much of an ONNX model as a reader without ONNX needs: the operators of its nodes, and their values.

/// A node: operator, inputs, outputs.
pub(super) struct Node {
    pub(super) op: String,
    pub(super) inputs: Vec<String>,
    pub(super) outputs: Vec<String>,
}

/// The nodes of a serialized model; None if it is damaged.
pub(super) fn nodes(model: &[u8]) -> Option<Vec<Node>> {
    // ModelProto.graph is field 7, GraphProto.node field 1.
    let mut found = Vec::new();
    for graph in parts(model, 7)? {
        for node in parts(graph, 1)? {
            // NodeProto: input 1, output 2, op_type 4.
            let text = |field| -> Option<Vec<String>> {
                parts(node, field)?.into_iter().map(|part| String::from_utf8(part.to_vec()).ok()).collect()
            };
            found.push(Node { op: text(4)?.pop().unwrap_or_default(), inputs: text(1)?, outputs: text(2)? });
        }
    }
    Some(found)
}

/// The contents of the fields `wanted` of a protobuf message, which have a length.
fn parts(mut data: &[u8], wanted: u64) -> Option<Vec<&[u8]>> {
    let mut found = Vec::new();
    while !data.is_empty() {
        let key = number(&mut data)?;
        let size = match key & 7 {
            0 => {
                number(&mut data)?;
                continue;
            }
            1 => 8,
            2 => usize::try_from(number(&mut data)?).ok()?,
            5 => 4,
            _ => return None,
        };
        let (part, rest) = data.split_at_checked(size)?;
        data = rest;
        if key >> 3 == wanted && key & 7 == 2 {
            found.push(part);
        }
    }
    Some(found)
}

fn number(data: &mut &[u8]) -> Option<u64> {
    let mut found = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = data.split_first()?;
        *data = rest;
        found |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(found);
        }
    }
    None
}
