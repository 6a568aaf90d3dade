// Package aip connects Go programs by the Agent Interaction Protocol (AIP), over gRPC: agents, which hold sessions with each other, toolboxes, whose tools agents call, and gateways, by which they
// find each other. Any edge of Agora is a gateway; a [Gateway] of this package is one that runs by itself.
//
// # Agents
//
// [Agent.Serve] registers an agent and keeps it registered, by signs of life, and with another gateway when its own is gone. The function of [Agent.Handle] is called for each session that
// another agent begins: it reads quests from a [Session] and replies. [Agent.Ask] is the short way to question another agent, [Agent.Call] the whole one: a [Call] is a session, both ways at once.
// [Agent.CallTool] calls a tool. Both go through the gateway; [Agent.CallAt] and [Agent.ToolsAt] call a node at the address that it is listed with.
//
// # Toolboxes
//
// [Toolbox.AddTool] adds a function as a tool, [AddFunc] one whose arguments are a struct. A tool that fails is a response that says so, not a failed call.
//
// # Sessions
//
// A session is free until its initiator sends START_QUEST. It is occupied then: both may say what they want, HOLD_QUEST and HOLD_RESPONSE, until the initiator asks for the end, STOP_QUEST, and the
// other one has sent its last answer, STOP_RESPONSE. What breaks these rules is not sent: [ErrOccupied], [ErrFree], [ErrStopping], [ErrNotEnded] and [ErrFinished] say which one. A session that fails
// ends with a gRPC status, behind a last answer that says why if there were others.
//
// # Errors
//
// What a gateway or another node answers is a gRPC status: status.Code(err) returns its code, whatever is around it. INVALID_REQUEST of this package is an [agora.Error]. A call between nodes is never made again by
// itself: after UNAVAILABLE nobody can know what the other one has done. What may be asked twice, as registering, is asked another gateway.
//
// # Being slow
//
// What is not read is not sent: gRPC's flow control reaches from the one who reads to the one who writes, and slows nobody else.
//
// # The protocol's own names
//
// AIP's document lists methods and attributes of three classes. These are theirs here:
//
//	Gateway(host_address, service_address, gateway_id)   NewGateway(GatewayConfig{Listen, Address, ID})
//	  address                                            Gateway.Address
//	  gateway_id                                         Gateway.ID
//	  start                                              Gateway.Start
//	  stop                                               Gateway.Close
//	  connect_to_gateway                                 Gateway.ConnectToGateway
//	  get_registered_nodes                               Gateway.Nodes
//	  get_registered_agents                              Gateway.Agents
//	  get_registered_tools                               Gateway.Toolboxes
//
//	Agent(host_address, service_address, agent_id, …)    NewAgent(Config{Listen, Address, ID, …})
//	  address                                            Agent.Address
//	  agent_id                                           Agent.ID
//	  name, domain, description, version                 Config.Name, .Domain, .Description, .Version
//	  input_mode, output_mode, skills                    Config.Input, .Output, .Skills
//	  agent_info, _create_agent_info                     Agent.Info
//	  start                                              Agent.Start, or Agent.Serve for the whole life
//	  stop                                               Agent.Close
//	  register_to_gateway                                Agent.Register
//	  update_peers                                       Agent.UpdatePeers
//	  get_nodes                                          Agent.Nodes
//	  create_task_info                                   NewTask
//	  create_content_items                               NewContent, or Text, Image, Audio and Embedded
//	  create_agent_message                               Agent.NewMessage
//	  create_agent_client                                Agent.Call; with serve_address Agent.CallAt
//	  submit_inquiry                                     Call.Start, .Hold and .Stop; Call.Send with a task or ids
//	  receive_feedback                                   Call.Receive, or Call.Messages
//	  close_agent_client                                 Call.Close
//	  receive_inquiry                                    Agent.Receive; of one session Session.Receive, or Session.Messages
//	  submit_feedback                                    Session.Reply and .Finish; Session.Send with a task or ids
//	  invoke_session_handlers                            Collect
//	  create_tool_client                                 Agent.Tools; with serve_address Agent.ToolsAt
//	  call_tool                                          Agent.CallTool, or ToolClient.Call
//	  close_tool_client                                  ToolClient.Close
//
//	Tool                                                 NewToolbox(Config{Listen, Address, ID, …})
//	  address                                            Toolbox.Address
//	  tool_id                                            Toolbox.ID
//	  name, domain, description                          Config.Name, .Domain, .Description
//	  input_mode, output_mode                            Config.Input, .Output
//	  version, arguments                                 Tool.Version, .Arguments
//	  tool_info                                          Toolbox.Info
//	  start                                              Toolbox.Start, or Toolbox.Serve for the whole life
//	  stop                                               Toolbox.Close
//	  register_to_gateway                                Toolbox.Register
//	  add_tool                                           Toolbox.AddTool
//	  tool                                               AddFunc
//
// Of its messages, write_text, write_image, write_audio and write_embedded are [Text], [Image], [Audio] and [Embedded], and add_content is an append to Content. Heartbeat, UpdateNodeInfo, DeregisterNode,
// SubscribeToUpdates and Unsubscribe, which the lists lack, are what Register does by itself, [Agent.UpdateInfo], [Agent.Deregister], [Agent.Subscribe] and [Agent.Unsubscribe], of toolboxes as well.
package aip
