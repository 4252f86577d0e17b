package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// vendure is a shop in Node.js, by TypeORM. Its package has no tests, so that the suite are requests to its two APIs.
var (
	vendure        = vendureOn("vendure", "postgres", "pg@8")
	vendureMariaDB = vendureOn("vendure-mariadb", "mariadb", "mysql2@3")
)

// vendureOn returns the shop on a server, which TypeORM reaches by a driver.
func vendureOn(name, engine, driver string) application {
	return application{name: name, version: vendureVersion, engine: engine,
		install: func(ctx context.Context, dir string) error { return installVendure(ctx, dir, driver) },
		prepare: func(ctx context.Context, dir string) error {
			return withVendure(ctx, dir, engine, true, func(v *shop) error { return v.open(ctx) })
		},
		suite: func(ctx context.Context, dir string, verdicts io.Writer) error {
			return withVendure(ctx, dir, engine, false, func(v *shop) error { return v.requests(ctx, verdicts) })
		},
		crowd: func(ctx context.Context, dir string, books io.Writer) error {
			return withVendure(ctx, dir, engine, false, func(v *shop) error { return v.atOnce(ctx, books) })
		}}
}

const vendureVersion = "3.7.3"

// vendureServer starts it with what a shop has to choose: where its tables are, and a payment that succeeds.
const vendureServer = `const { bootstrap, dummyPaymentHandler } = require('@vendure/core');
bootstrap({
	apiOptions: { hostname: '127.0.0.1', port: +process.env.PORT, adminApiPath: 'admin-api', shopApiPath: 'shop-api' },
	authOptions: {
		tokenMethod: 'cookie', requireVerification: false, cookieOptions: { secret: 'field' },
		superadminCredentials: { identifier: 'superadmin', password: 'superadmin' },
	},
	dbConnectionOptions: { type: process.env.ENGINE, url: process.env.DATABASE_URL, synchronize: process.env.MAKE_TABLES === '1' },
	paymentOptions: { paymentMethodHandlers: [dummyPaymentHandler] },
}).catch(err => { console.error(err); process.exit(1); });
`

func installVendure(ctx context.Context, dir, driver string) error {
	server := filepath.Join(dir, "server.js")
	if _, err := os.Stat(server); err != nil {
		if err := command(ctx, dir, "npm", "install", "--no-audit", "--no-fund", "@vendure/core@"+vendureVersion, driver); err != nil {
			return err
		}
	}
	return os.WriteFile(server, []byte(vendureServer), 0o644)
}

// A shop is one that runs.
type shop struct{ base string }

func withVendure(ctx context.Context, dir, engine string, tables bool, f func(*shop) error) error {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	port := address[len("127.0.0.1:"):]
	env := []string{"PORT=" + port, "ENGINE=" + engine}
	if tables {
		env = append(env, "MAKE_TABLES=1")
	}
	base := "http://" + address
	return program{path: "node", args: []string{"server.js"}, dir: dir, env: env, log: filepath.Join(dir, "vendure.log"),
		ready: base + "/health"}.while(ctx, func() error { return f(&shop{base}) })
}

// customer returns a new client of the shop, in a session of its own.
func (s *shop) customer() graph { return graph{newClient(s.base, nil), "/shop-api"} }

// administrator returns a client that is logged in.
func (s *shop) administrator(ctx context.Context) (graph, error) {
	g := graph{newClient(s.base, nil), "/admin-api"}
	return g, g.ask(ctx, `mutation { login(username: "superadmin", password: "superadmin") { ... on ErrorResult { errorCode } } }`, nil, nil)
}

// An id is that of what a mutation made, which has the name x there.
type id struct{ X struct{ ID string } }

// open gives the shop what it needs to sell: a country, taxes, a way to ship and to pay, one product, a coupon.
func (s *shop) open(ctx context.Context) error {
	admin, err := s.administrator(ctx)
	if err != nil {
		return err
	}
	var country, zone, category, product id
	en := func(name string) []values {
		return []values{{"languageCode": "en", "name": name, "slug": name, "description": ""}}
	}
	named := func(name string) []values { return []values{{"languageCode": "en", "name": name}} }
	described := func(name string) []values { return []values{{"languageCode": "en", "name": name, "description": ""}} }
	argument := func(name, value string) values { return values{"name": name, "value": value} }
	for _, step := range []struct {
		query string
		input func() any
		made  *id
	}{
		{"($in: CreateCountryInput!) { x: createCountry(input: $in) { id } }",
			func() any { return values{"code": "DE", "enabled": true, "translations": named("Germany")} }, &country},
		{"($in: CreateZoneInput!) { x: createZone(input: $in) { id } }",
			func() any { return values{"name": "Europe", "memberIds": []string{country.X.ID}} }, &zone},
		{"($in: CreateTaxCategoryInput!) { x: createTaxCategory(input: $in) { id } }",
			func() any { return values{"name": "standard", "isDefault": true} }, &category},
		{"($in: CreateTaxRateInput!) { x: createTaxRate(input: $in) { id } }", func() any {
			return values{"name": "standard", "enabled": true, "value": 19, "categoryId": category.X.ID, "zoneId": zone.X.ID}
		}, nil},
		{"($in: UpdateChannelInput!) { x: updateChannel(input: $in) { ... on Channel { id } ... on ErrorResult { errorCode } } }", func() any {
			return values{"id": "1", "defaultTaxZoneId": zone.X.ID, "defaultShippingZoneId": zone.X.ID}
		}, nil},
		{"($in: CreateShippingMethodInput!) { x: createShippingMethod(input: $in) { id } }", func() any {
			return values{"code": "post", "fulfillmentHandler": "manual-fulfillment", "translations": described("post"),
				"checker": values{"code": "default-shipping-eligibility-checker", "arguments": []values{argument("orderMinimum", "0")}},
				"calculator": values{"code": "default-shipping-calculator", "arguments": []values{argument("rate", "500"),
					argument("includesTax", "auto"), argument("taxRate", "0")}}}
		}, nil},
		{"($in: CreatePaymentMethodInput!) { x: createPaymentMethod(input: $in) { id } }", func() any {
			return values{"code": "pay", "enabled": true, "translations": named("pay"),
				"handler": values{"code": "dummy-payment-handler", "arguments": []values{argument("automaticSettle", "true")}}}
		}, nil},
		{"($in: CreateProductInput!) { x: createProduct(input: $in) { id } }",
			func() any { return values{"enabled": true, "translations": en("thing")} }, &product},
		{"($in: [CreateProductVariantInput!]!) { x: createProductVariants(input: $in) { id } }", func() any {
			return []values{{"productId": product.X.ID, "sku": "thing", "price": 1000, "stockOnHand": 1000, "trackInventory": "TRUE",
				"taxCategoryId": category.X.ID, "translations": named("thing")}}
		}, nil},
		{"($in: CreatePromotionInput!) { x: createPromotion(input: $in) { ... on Promotion { id } ... on ErrorResult { errorCode } } }", func() any {
			return values{"enabled": true, "couponCode": "TEN", "translations": named("ten"), "conditions": []values{},
				"actions": []values{{"code": "order_percentage_discount", "arguments": []values{argument("discount", "10")}}}}
		}, nil},
	} {
		if step.made == nil {
			err = admin.ask(ctx, "mutation "+step.query, values{"in": step.input()}, nil)
		} else {
			err = admin.ask(ctx, "mutation "+step.query, values{"in": step.input()}, step.made)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", step.query, err)
		}
	}
	return nil
}

// What a customer asks for. An order is the session's.
const (
	failed      = " ... on ErrorResult { errorCode } } }"
	addThing    = "mutation { x: addItemToOrder(productVariantId: 1, quantity: 1) { ... on Order { id code totalQuantity }" + failed
	shipTo      = `mutation { x: setOrderShippingAddress(input: { streetLine1: "Street 1", city: "Town", postalCode: "1", countryCode: "DE" }) { ... on Order { id }` + failed
	byPost      = "mutation { x: setOrderShippingMethod(shippingMethodId: [1]) { ... on Order { id }" + failed
	useCoupon   = `mutation { x: applyCouponCode(couponCode: "TEN") { ... on Order { id }` + failed
	checkOut    = `mutation { x: transitionOrderToState(state: "ArrangingPayment") { ... on Order { id }` + failed
	pay         = `mutation { x: addPaymentToOrder(input: { method: "pay", metadata: {} }) { ... on Order { id code }` + failed
	setGuest    = "mutation ($mail: String!) { x: setCustomerForOrder(input: { firstName: \"F\", lastName: \"L\", emailAddress: $mail }) { ... on Order { id }" + failed
	register    = "mutation ($mail: String!) { x: registerCustomerAccount(input: { emailAddress: $mail, password: \"secret-word\" }) { ... on Success { success }" + failed
	setStock    = "mutation ($n: Int!) { x: updateProductVariants(input: [{ id: 1, stockOnHand: $n }]) { id } }"
	makeRole    = "mutation ($code: String!) { x: createRole(input: { code: $code, description: $code, permissions: [ReadOrder] }) { id } }"
	permit      = "mutation ($id: ID!, $may: [Permission!]!) { x: updateRole(input: { id: $id, permissions: $may }) { id } }"
	describe    = "mutation ($id: ID!, $text: String!) { x: updateRole(input: { id: $id, description: $text }) { id } }"
	cancelOrder = "mutation ($id: ID!) { x: cancelOrder(input: { orderId: $id, reason: \"field\", cancelShipping: true }) { ... on Order { id }" + failed
)

// requests sends what customers and an administrator do, twice, one request after the other.
func (s *shop) requests(ctx context.Context, verdicts io.Writer) error {
	admin, err := s.administrator(ctx)
	if err != nil {
		return err
	}
	sent := 0
	do := func(g graph, what, query string, variables values, to any) error {
		sent++
		err := g.ask(ctx, query, variables, to)
		how := "done"
		if refused := new(refusal); errors.As(err, &refused) {
			how, err = "refused", nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		_, err = fmt.Fprintf(verdicts, "%d %s: %s\n", sent, what, how)
		return err
	}
	for _, round := range []string{"one", "two"} {
		var role, order id
		for n := range 3 {
			g, mail := s.customer(), values{"mail": fmt.Sprintf("%s%d@example.org", round, n)}
			errs := []error{do(g, "add to cart", addThing, nil, nil), do(g, "add to cart", addThing, nil, nil), do(g, "say who", setGuest, mail, nil),
				do(g, "say where to", shipTo, nil, nil), do(g, "say how", byPost, nil, nil)}
			if n > 0 {
				errs = append(errs, do(g, "use a coupon", useCoupon, nil, nil))
			}
			errs = append(errs, do(g, "check out", checkOut, nil, nil), do(g, "pay", pay, nil, &order))
			if err := errors.Join(errs...); err != nil {
				return err
			}
		}
		if err := errors.Join(
			do(s.customer(), "register", register, values{"mail": round + "@example.org"}, nil),
			do(admin, "set the stock", setStock, values{"n": 900}, nil),
			do(admin, "make a role", makeRole, values{"code": round}, &role),
			do(admin, "permit", permit, values{"id": role.X.ID, "may": []string{"ReadOrder", "ReadCustomer"}}, nil),
			do(admin, "describe a role", describe, values{"id": role.X.ID, "text": "of " + round}, nil),
			do(admin, "cancel an order", cancelOrder, values{"id": order.X.ID}, nil)); err != nil {
			return err
		}
	}
	return nil
}

// shopPairs is how often two requests are sent at once.
const shopPairs = 20

// atOnce sends requests two at a time, and asks the administrator's API what came of them.
func (s *shop) atOnce(ctx context.Context, books io.Writer) error {
	admin, err := s.administrator(ctx)
	if err != nil {
		return err
	}
	quantities, payments, accounts := 0, 0, 0
	for n := range shopPairs {
		g, mail := s.customer(), values{"mail": fmt.Sprintf("at-once%d@example.org", n)}
		var order id
		var cart struct{ ActiveOrder struct{ TotalQuantity int } }
		ask := func(query string, variables values) func() error {
			return func() error { return g.ask(ctx, query, variables, nil) }
		}
		errs := append([]error{g.ask(ctx, addThing, nil, &order)}, atOnce(ask(addThing, nil), ask(addThing, nil))...)
		errs = append(errs, g.ask(ctx, "{ activeOrder { totalQuantity } }", nil, &cart), ask(setGuest, mail)(), ask(shipTo, nil)(),
			ask(byPost, nil)(), ask(checkOut, nil)())
		errs = append(errs, atOnce(ask(pay, nil), ask(pay, nil))...)
		account := values{"mail": fmt.Sprintf("account%d@example.org", n)}
		one, two := s.customer(), s.customer()
		errs = append(errs, atOnce(func() error { return one.ask(ctx, register, account, nil) },
			func() error { return two.ask(ctx, register, account, nil) })...)
		if err := unlessRefused(errs); err != nil {
			return err
		}
		if cart.ActiveOrder.TotalQuantity < 3 {
			quantities++
		}
		var of struct {
			Order     struct{ Payments []struct{ ID string } }
			Customers struct{ TotalItems int }
		}
		if err := admin.ask(ctx, `query ($id: ID!, $mail: String!) { order(id: $id) { payments { id } }
			customers(options: { filter: { emailAddress: { eq: $mail } } }) { totalItems } }`,
			values{"id": order.X.ID, "mail": account["mail"]}, &of); err != nil {
			return err
		}
		if len(of.Order.Payments) != 1 {
			payments++
		}
		if of.Customers.TotalItems > 1 {
			accounts++
		}
	}
	stock, err := s.boughtAtOnce(ctx, admin)
	if err != nil {
		return err
	}
	fmt.Fprintf(books, "  one thing added in two tabs: a quantity is lost in %d of %d\n", quantities, shopPairs)
	fmt.Fprintf(books, "  one order paid twice: two payments of it in %d of %d\n", payments, shopPairs)
	fmt.Fprintf(books, "  one address registered twice: two accounts in %d of %d\n", accounts, shopPairs)
	fmt.Fprintf(books, "  two customers pay at once: the stock allocates too few in %d of %d\n", stock, shopPairs)
	return nil
}

// boughtAtOnce has two customers pay at once, and returns how often the stock then allocates less than they bought.
func (s *shop) boughtAtOnce(ctx context.Context, admin graph) (wrong int, err error) {
	allocated := func() (int, error) {
		var of struct {
			ProductVariant struct {
				StockLevels []struct{ StockAllocated int }
			}
		}
		if err := admin.ask(ctx, "{ productVariant(id: 1) { stockLevels { stockAllocated } } }", nil, &of); err != nil {
			return 0, err
		}
		if len(of.ProductVariant.StockLevels) != 1 {
			return 0, fmt.Errorf("%d levels of a stock, want 1", len(of.ProductVariant.StockLevels))
		}
		return of.ProductVariant.StockLevels[0].StockAllocated, nil
	}
	for n := range shopPairs {
		var pays []func() error
		for i := range 2 {
			g := s.customer()
			mail := values{"mail": fmt.Sprintf("buyer%d-%d@example.org", n, i)}
			for _, query := range []string{addThing, setGuest, shipTo, byPost, checkOut} {
				if err := g.ask(ctx, query, mail, nil); err != nil {
					return 0, err
				}
			}
			pays = append(pays, func() error { return g.ask(ctx, pay, nil, nil) })
		}
		before, err := allocated()
		if err != nil {
			return 0, err
		}
		if err := errors.Join(atOnce(pays...)...); err != nil {
			return 0, err
		}
		after, err := allocated()
		if err != nil {
			return 0, err
		}
		if after-before < 2 {
			wrong++
		}
	}
	return wrong, nil
}
