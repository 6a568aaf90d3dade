package member

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
)

// idOf returns the agent id that the name of a server makes: without what ids may not have. INVALID_REQUEST where
// nothing is left.
func idOf(r *mcp.InitializeResult) (string, error) {
	name := ""
	if r.ServerInfo != nil {
		name = cmp.Or(r.ServerInfo.Name, r.ServerInfo.Title)
	}
	name = strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) || c == utf8.RuneError {
			return -1
		}
		return c
	}, name)
	id, err := agora.ParseOwnID(strings.TrimSpace(cut(strings.TrimSpace(name), agora.MaxIDLength)))
	if err != nil {
		return "", &agora.Error{Code: agora.InvalidRequest, Message: "the name of the tool server can't be its agent id: give one", Cause: err}
	}
	return string(id), nil
}

// cut returns a text as valid UTF-8 of at most so many runes.
func cut(s string, most int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most])
}

// card reads the tools of a session, and returns what the directory is to say. It does not last longer than a start
// may.
func (m *Member) card(ctx context.Context, s *session) (client.Card, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, m.cfg.StartTimeout, errSlowStart)
	defer cancel()
	stop := context.AfterFunc(s.life, cancel)
	defer stop()
	tools, err := s.listTools(ctx, agora.MaxSkills)
	if err != nil {
		return client.Card{}, cmp.Or(s.ended(), context.Cause(ctx), err)
	}
	r := s.InitializeResult()
	card := client.Card{Type: "mcp", Description: r.Instructions, Tools: m.skills(tools)}
	if r.ServerInfo != nil {
		card.Name = cut(cmp.Or(r.ServerInfo.Title, r.ServerInfo.Name), agora.MaxCardWord)
		card.Description = cmp.Or(card.Description, r.ServerInfo.Title)
	}
	card.Description = cut(card.Description, agora.MaxDescription)
	return card, nil
}

// skills returns tools as the directory has them. What can't stand there is left out, and logged once: a schema, or
// where it must be the tool.
func (m *Member) skills(tools []*mcp.Tool) (all []agora.Skill) {
	for _, t := range tools {
		skill := agora.Skill{Name: t.Name, Description: cut(t.Description, agora.MaxDescription), Schema: schemaOf(t)}
		if why := fault(skill); why != nil {
			skill.Schema = nil
			if why := fault(skill); why != nil {
				m.tellOnce("the tool", t.Name, why)
				continue
			}
			m.tellOnce("its schema", t.Name, why)
		}
		if slices.ContainsFunc(all, func(s agora.Skill) bool { return s.Name == skill.Name }) {
			m.tellOnce("the tool", t.Name, agora.Errorf(agora.InvalidRequest, "another one has its name"))
			continue
		}
		if len(all) == agora.MaxSkills {
			m.tellOnce("the tool", t.Name, agora.Errorf(agora.InvalidRequest, "there are more than %d", agora.MaxSkills))
			break
		}
		all = append(all, skill)
	}
	return all
}

// fault is why the directory takes no tool like this one; nil where it does.
func fault(s agora.Skill) error {
	probe := agora.Agent{ID: "tool", Tools: []agora.Skill{s}}
	return probe.Check(maxCard)
}

// schemaOf returns a tool's schema as the server has written it; nil where there is none.
func schemaOf(t *mcp.Tool) json.RawMessage {
	if schema := written(t.Meta); schema != nil || t.InputSchema == nil {
		return schema
	}
	b, err := encode(t.InputSchema)
	if err != nil {
		return nil
	}
	return b
}

// encode encodes a value as JSON that is no HTML.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// tellOnce logs what can't be told of a tool, the first time.
func (m *Member) tellOnce(what, tool string, why error) {
	tool = cut(tool, agora.MaxSkillName)
	if key := what + tool; !m.said[key] && len(m.said) < maxSaid {
		m.said[key] = true
		m.cfg.Log.Warn("the directory does not show all of a tool", "tool", tool, "lacks", what, "err", why)
	}
}

// maxSaid bounds what is kept in mind of what was logged.
const maxSaid = 1024
