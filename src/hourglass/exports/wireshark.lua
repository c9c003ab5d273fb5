-- SPDX-License-Identifier: Apache-2.0
-- Reads the packet comments of Hourglass's captures as fields: hourglass.stream, hourglass.packet, hourglass.total,
-- and the time in each layer, all nodes together, as hourglass.LAYER. Times are in microseconds.
--
--     tshark -X lua_script:hourglass.lua -r client-eth0.pcapng -T fields -e hourglass.stream -e hourglass.qdisc
--
-- A comment names the nodes of the path and the layers that took time there:
--     upload::1 packet 7: client tsq 812.3 us, ring 12.1 us | router rx 20 us

local LAYERS = { @LAYERS@ }

local protocol = Proto("hourglass", "Hourglass")
local fields = {
  stream = ProtoField.string("hourglass.stream", "Stream"),
  packet = ProtoField.uint32("hourglass.packet", "Packet of the stream"),
  total = ProtoField.double("hourglass.total", "Time so far (us)"),
  longest = ProtoField.string("hourglass.longest", "Layer with the most time"),
  node = ProtoField.string("hourglass.node", "Time at a node"),
}
for _, layer in ipairs(LAYERS) do
  fields[layer] = ProtoField.double("hourglass." .. layer, "Time in " .. layer .. " (us)")
end
protocol.fields = fields

local comment_of = Field.new("frame.comment")

function protocol.dissector(buffer, packet, tree)
  local comment = comment_of()
  if not comment then return end
  local text = tostring(comment.value)
  local stream, number, path = text:match("^(.-) packet (%d+): (.*)$")
  if not stream then return end

  local branch = tree:add(protocol, buffer(0, 0), "Hourglass: " .. stream .. ", packet " .. number)
  branch:add(fields.stream, stream)
  branch:add(fields.packet, tonumber(number))
  local times, total, longest = {}, 0, nil
  for visit in (path .. " | "):gmatch("(.-) | ") do
    branch:add(fields.node, visit)
    for layer, time in visit:gmatch("([%w_]+) ([%d.]+) us") do
      times[layer] = (times[layer] or 0) + tonumber(time)
    end
  end
  for _, layer in ipairs(LAYERS) do
    local time = times[layer]
    if time then
      branch:add(fields[layer], time)
      total = total + time
      if not longest or time > times[longest] then longest = layer end
    end
  end
  branch:add(fields.total, total)
  if longest then branch:add(fields.longest, longest) end
end

register_postdissector(protocol)
